"""Models that decide together: samples and log-probs are those of the sum of their logits, in both text policies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.util.outputs import forward_batch

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Two models of other weights, run by the lean policy and by transformers."""
    lean, hf = [], []
    for seed in (0, 1):
        policy = untrained(layers=2)
        noise = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for w in policy.parameters():
                w += 0.1 * torch.randn(w.shape, generator=noise)
        policy.save(folder := tmp_path_factory.mktemp(f"model{seed}"))
        lean.append(policy)
        hf.append(HFPolicy.load(folder, "cpu", "float32"))
    return lean, hf


def replies(policy, temperature=1.0, max_new=12):
    asked = [ask(q) for q in QUESTIONS for _ in range(3)]
    rows = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return policy.extend(rows, Sampling(max_new, temperature), torch.Generator().manual_seed(5))


def joint_logits(first, second, weight, batch):
    """(n,) log-probs of the decisions, from whole matrices of logits."""
    decided = batch.mask[:, 1:]
    sums = 0.0
    for factor, model in ((1.0, first), (weight, second)):
        hidden = model.evaluate(batch, ("hidden",)).hidden[:, :-1][decided]
        sums = sums + factor * (hidden @ model.vocabulary_head().T)
    return sums.log_softmax(1).gather(1, batch.ids[:, 1:][decided][:, None]).squeeze(1)


@pytest.mark.parametrize("kind", [0, 1])
def test_what_is_sampled_has_the_log_probs_of_the_sum(pairs, kind):
    first, second = pairs[kind]
    before = second.token_count.generated
    with first.joined([(0.7, second)]):
        rows = replies(first)
    batch = forward_batch(rows, first.device)
    with torch.no_grad():
        wanted = joint_logits(first, second, 0.7, batch)
    found = np.concatenate([turn.logprobs for t in rows for turn in t.turns if turn.logprobs is not None])
    np.testing.assert_allclose(found, wanted.numpy(), atol=2e-3)
    assert second.token_count.generated - before == len(found)
    # outside of the context it is itself again
    alone = forward_batch(again := replies(first), first.device)
    own = np.concatenate([turn.logprobs for t in again for turn in t.turns if turn.logprobs is not None])
    np.testing.assert_allclose(own, first.evaluate(alone).logprobs[alone.mask].detach().numpy(), atol=2e-3)


@pytest.mark.parametrize("kind", [0, 1])
def test_what_another_model_finds_unlikely_is_not_sampled(pairs, kind):
    first, second = pairs[kind]
    with first.restricted(second, 0.2):
        rows = replies(first, temperature=0.5)
    batch = forward_batch(rows, first.device)
    with torch.no_grad():
        own, other = (x.evaluate(batch, ("hidden",)).hidden[:, :-1][batch.mask[:, 1:]] for x in (first, second))
        ids = batch.ids[:, 1:][batch.mask[:, 1:]]
        wanted, inside = first.nucleus_logprobs(own / 0.5, ids, second, other, 0.2)
        free = first.nucleus_logprobs(own, ids, second, other, 1.0)[0]
    assert inside.all()
    found = np.concatenate([turn.sampled for t in rows for turn in t.turns if turn.sampled is not None])
    np.testing.assert_allclose(found, wanted.numpy(), atol=2e-3)
    # of the own distribution it is a small part
    assert float(free.mean()) < float(wanted.mean()) - 1
    # outside of the context anything is
    again = forward_batch(replies(first, temperature=0.5), first.device)
    with torch.no_grad():
        own, other = (x.evaluate(again, ("hidden",)).hidden[:, :-1][again.mask[:, 1:]] for x in (first, second))
        _, inside = first.nucleus_logprobs(own, again.ids[:, 1:][again.mask[:, 1:]], second, other, 0.2)
    assert not inside.all()


def test_both_kinds_sample_the_same(pairs):
    texts = []
    for first, second in pairs:
        with first.joined([(1.0, second), (-0.5, first)]):
            texts.append([t.reply for t in replies(first, temperature=0.0)])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", [0, 1])
def test_the_gradient_of_joint_log_probs_is_the_others_alone(pairs, kind):
    first, second = pairs[kind]
    batch = forward_batch(replies(first), first.device)
    decided = batch.mask[:, 1:]
    own, others = (m.evaluate(batch, ("hidden",)).hidden[:, :-1][decided] for m in (first, second))
    found = first.joint_logprobs(own, [(0.7, second, others)], batch.ids[:, 1:][decided])
    torch.testing.assert_close(found, joint_logits(first, second, 0.7, batch), atol=1e-4, rtol=1e-4)
    weights = [p for m in (first, second) for p in m.parameters()]
    gradients = torch.autograd.grad(found.sum(), weights, allow_unused=True)
    moved = [g is not None and bool(g.any()) for g in gradients]
    assert not any(moved[: len(first.parameters())])
    assert all(moved[len(first.parameters()) :])
    wanted = torch.autograd.grad(joint_logits(first, second, 0.7, batch).sum(), second.parameters())
    for g, w in zip(gradients[len(first.parameters()) :], wanted, strict=True):
        torch.testing.assert_close(g, w, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_context_inside_of_another_leaves_it_as_it_was(pairs, kind):
    first, second = pairs[kind]
    with first.joined([(0.7, second)]):
        alone = [t.reply for t in replies(first, temperature=0.0)]
        with first.joined([(-0.5, second)]):
            assert [t.reply for t in replies(first, temperature=0.0)] != alone
        assert [t.reply for t in replies(first, temperature=0.0)] == alone


def test_models_that_cannot_be_added_are_refused(pairs):
    (lean, _), (hf, _) = pairs
    with pytest.raises(RewardlabError, match="write hf: before both"), lean.joined([(1.0, hf)]):
        pass
