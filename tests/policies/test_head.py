"""The chunked head says what a head that holds all logits at once would say, forward and backward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from live_bytes import LiveBytes

from rewardlab.policies import head
from rewardlab.policies.head import chunks_of, gradient_products, per_token_losses, token_logprobs

N, HIDDEN, VOCAB = 50, 12, 40


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    monkeypatch.setattr(head, "CHUNK_ELEMENTS", 17 * VOCAB)
    assert [p.stop - p.start for p in chunks_of(N, torch.zeros(VOCAB, 1))] == [17, 17, 16]


@pytest.fixture
def inputs():
    g = torch.Generator().manual_seed(0)
    hidden = torch.randn(N, HIDDEN, generator=g, dtype=torch.float64).requires_grad_()
    weight = torch.randn(VOCAB, HIDDEN, generator=g, dtype=torch.float64).requires_grad_()
    return hidden, weight, torch.randint(0, VOCAB, (N,), generator=g), torch.randn(2, N, generator=g)


def in_float32(*tensors):
    return [t.detach().float().requires_grad_() for t in tensors]


def direct(hidden, weight, ids):
    logp = F.log_softmax(hidden @ weight.T, -1)
    return logp.gather(1, ids[:, None]).squeeze(1), -(logp.exp() * logp).sum(1)


def assert_close(found, wanted, atol=2e-5):
    torch.testing.assert_close(found.double(), wanted.double(), atol=atol, rtol=1e-4)


def test_logprobs_and_entropy_are_those_of_the_whole_matrix(inputs):
    hidden, weight, ids, _ = inputs
    found = token_logprobs(*in_float32(hidden, weight), ids)
    for f, w in zip(found, direct(hidden, weight, ids), strict=True):
        assert f.dtype == torch.float32
        assert_close(f, w)


@pytest.mark.parametrize("which", ["logprobs", "entropy", "both"])
def test_gradients_are_those_of_the_whole_matrix(inputs, which):
    hidden, weight, ids, factors = inputs
    factors = factors * torch.tensor([which != "entropy", which != "logprobs"])[:, None]
    h, w = in_float32(hidden, weight)
    for f, arguments in ((token_logprobs, (h, w)), (direct, (hidden, weight))):
        logp, entropy = f(*arguments, ids)
        ((factors[0] * logp).sum() + (factors[1] * entropy).sum()).backward()
    assert hidden.grad.abs().max() > 0.01
    assert_close(h.grad, hidden.grad)
    assert_close(w.grad, weight.grad)


def test_large_logits_neither_overflow_nor_lose_the_answer(inputs):
    hidden, weight, ids, _ = inputs
    h, w = in_float32(100 * hidden, weight)
    logp, entropy = token_logprobs(h, w, ids)
    wanted = direct(h.double(), w.double(), ids)
    torch.testing.assert_close(logp.double(), wanted[0], atol=2e-3, rtol=1e-5)
    torch.testing.assert_close(entropy.double(), wanted[1], atol=2e-3, rtol=1e-5)


def test_a_frozen_head_gets_no_gradient_and_changes_none(inputs):
    hidden, weight, ids, factors = inputs
    grads = []
    for frozen in (False, True):
        h, w = in_float32(hidden, weight)
        w.requires_grad_(not frozen)
        (factors[0] * token_logprobs(h, w, ids)[0]).sum().backward()
        assert (w.grad is None) == frozen
        grads.append(h.grad)
    assert torch.equal(*grads)


def two_numbers(logits, ids):
    """What objectives over the whole vocabulary compute: here a cross-entropy and a squared normaliser."""
    return {"nll": F.cross_entropy(logits, ids, reduction="none"), "z": logits.logsumexp(1) ** 2}


def margin(logits, ids):
    return {"margin": logits.gather(1, ids[:, None]).squeeze(1) - logits.mean(1)}


def test_per_token_losses_are_those_of_the_whole_matrix_with_their_gradients(inputs):
    hidden, weight, ids, factors = inputs
    h, w = in_float32(hidden, weight)
    found = per_token_losses(h, w, ids, (two_numbers, margin))
    logits = hidden @ weight.T
    wanted = two_numbers(logits, ids) | margin(logits, ids)
    assert list(found) == ["nll", "z", "margin"]
    for name, value in wanted.items():
        assert_close(found[name], value)
    for values in (found, wanted):
        (factors[0] * values["nll"] + factors[1] * values["z"] - values["margin"]).sum().backward()
    assert_close(h.grad, hidden.grad, 2e-4)
    assert_close(w.grad, weight.grad, 2e-4)


def test_no_token_gives_empty_columns_that_still_carry_a_gradient(inputs):
    """A micro-batch may hold only rows without decisions."""
    hidden, weight, ids, _ = inputs
    h, w = in_float32(hidden, weight)
    logp, entropy = token_logprobs(h[:0], w, ids[:0])
    extra = per_token_losses(h[:0], w, ids[:0], (two_numbers,))
    assert [x.shape for x in (logp, entropy, extra["nll"], extra["z"])] == [(0,)] * 4
    (logp.sum() + entropy.sum() + extra["nll"].sum()).backward()
    assert h.grad.abs().sum() == 0
    assert w.grad.abs().sum() == 0


def test_bfloat16_is_close(inputs):
    hidden, weight, ids, _ = inputs
    logp, entropy = token_logprobs(hidden.detach().bfloat16(), weight.detach().bfloat16(), ids)
    wanted = direct(hidden, weight, ids)
    assert logp.dtype == entropy.dtype == torch.float32
    torch.testing.assert_close(logp.double(), wanted[0], atol=0.15, rtol=0.02)
    torch.testing.assert_close(entropy.double(), wanted[1], atol=0.1, rtol=0.02)


def test_divergences_are_those_of_whole_distributions(inputs):
    hidden, weight, _, _ = inputs
    teacher = torch.randn(N, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    of_teacher = torch.randn(VOCAB, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    p, q = (F.log_softmax(h @ w.T, -1) for h, w in ((teacher, of_teacher), (hidden, weight)))
    wanted = F.kl_div(q, p, reduction="none", log_target=True).sum(1)
    (h, w), (t, of_t) = in_float32(hidden, weight), in_float32(teacher, of_teacher)
    found = head.divergences(t, of_t, h, w)
    assert_close(found, wanted)
    wanted.sum().backward()
    found.sum().backward()
    assert_close(h.grad, hidden.grad)
    assert_close(w.grad, weight.grad)


def test_a_model_does_not_diverge_from_itself(inputs):
    hidden, weight = in_float32(*inputs[:2])
    assert head.divergences(hidden, weight, hidden, weight).abs().max() < 1e-5


def test_gradient_products_foretell_what_a_step_of_the_head_for_one_token_does_to_the_sources(inputs):
    hidden, weight, ids, _ = inputs
    sources = torch.arange(N) % 3 == 0
    found = gradient_products(hidden.float(), weight.float(), ids, sources)
    assert found.shape == (N,)
    for i in (0, 1, N - 1):
        slope = torch.autograd.grad(direct(hidden, weight, ids)[0][i], weight)[0]
        ends = [direct(hidden, weight + step * slope, ids)[0][sources].sum() for step in (1e-4, -1e-4)]
        assert float(found[i]) == pytest.approx(float((ends[0] - ends[1]).detach()) / 2e-4, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("which", ["logprobs", "entropy", "both", "extra"])
def test_no_more_than_a_few_chunks_of_logits_are_there_at_a_time(which, monkeypatch):
    """Of a vocabulary of 32,000 and 512 tokens all logits would be 65 MB; here a chunk is 4 MB."""
    monkeypatch.setattr(head, "CHUNK_ELEMENTS", 1 << 20)
    rng = torch.Generator().manual_seed(0)
    hidden = torch.randn(512, 8, generator=rng, requires_grad=True)
    weight = torch.randn(32000, 8, generator=rng, requires_grad=True)
    ids = torch.randint(0, 32000, (512,), generator=rng)
    with LiveBytes() as live:
        if which == "extra":
            per_token_losses(hidden, weight, ids, (two_numbers,))["nll"].sum().backward()
        else:
            logprobs, entropy = token_logprobs(hidden, weight, ids)
            ((which != "entropy") * logprobs.sum() + (entropy.sum() if which != "logprobs" else 0.0)).backward()
    chunk = 4 * 32000 * (head.CHUNK_ELEMENTS // 32000)
    assert live.largest <= chunk
    # the gradient of the matrix, in float32 and as it is returned; per_token_losses adds up those of chunks
    gradients = 3 * weight.numel() * 4
    assert live.peak < gradients + 5 * chunk


def test_the_likeliest_tokens_are_those_of_the_whole_matrix(inputs):
    hidden, weight, _, _ = inputs
    ids, logprobs = head.likeliest(hidden.float(), weight.float(), 3)
    wanted = F.log_softmax(hidden @ weight.T, -1).topk(3, dim=1)
    assert torch.equal(ids, wanted.indices)
    assert_close(logprobs, wanted.values)
