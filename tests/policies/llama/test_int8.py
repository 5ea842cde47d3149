"""Weights in 8 bits: their numbers by hand, their products beside PyTorch's, and that nothing learns on them."""

from __future__ import annotations

import copy
import ctypes

import numpy as np
import pytest
import torch

from rewardlab import api, load_policy
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.policies.llama import int8
from rewardlab.policies.llama.decode_step import fold
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native import library as native
from rewardlab.policies.llama.native_steps import Int8Steps
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.llama.steps import Steps

CPU = torch.device("cpu")
SHAPE = {
    "model_type": "qwen2", "vocab_size": 512, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 160, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}  # fmt: skip
compiled = pytest.mark.skipif(native.library() is None, reason="no C++ compiler")


def values(bytes_of_rows):
    """The weights that bytes stand for."""
    inputs = bytes_of_rows.shape[1] * 16 // 17
    numbers = bytes_of_rows[:, :inputs].contiguous().view(torch.int8).float()
    scales = bytes_of_rows[:, inputs:].contiguous().view(torch.bfloat16).float()
    return numbers * scales.repeat_interleave(int8.GROUP, 1)


def test_numbers_and_scales_by_hand():
    row = torch.zeros(1, 64)
    # of 32 neighbours the largest is 127 / 128, and a 127th of it, and a 256th more, is 1/128 * (1 + 1/256)
    row[0, :4] = torch.tensor([127.0, -127.0, 63.5, 0.4]) / 128
    found = int8.rounded(row)
    assert found.shape == (1, 64 + 2 * 2)
    scale = 1.0 / 128
    # which lies halfway between two numbers of bfloat16, 1/128 and 1/128 * (1 + 1/128): the even one is taken
    assert found[0, 64:].contiguous().view(torch.bfloat16).tolist() == [scale, 0.0]
    assert found[0, :64].view(torch.int8).tolist() == [127, -127, 64, *[0] * 61]


def test_no_weight_is_further_off_than_half_a_step_and_none_overflows():
    matrix = torch.randn(200, 320, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 3, 200)[:, None]
    found = int8.rounded(matrix)
    numbers = found[:, :320].contiguous().view(torch.int8)
    assert numbers.abs().max() == 127
    assert numbers.min() == -127
    scales = found[:, 320:].contiguous().view(torch.bfloat16).float().repeat_interleave(32, 1)
    assert ((values(found) - matrix).abs() <= 0.5001 * scales).all()
    # a step is a 127th of the largest neighbour, and a bfloat16's rounding more
    tops = matrix.view(200, 10, 32).abs().amax(2).repeat_interleave(32, 1)
    assert (scales <= tops / 127 * (1 + 2**-7)).all()


@pytest.fixture(scope="module")
def for_any_processor(tmp_path_factory):
    """The library without the code for AVX2."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(native, "FLAGS", ("-std=c++17", "-O1", "-shared", "-fPIC", "-pthread"))
        changed.setenv("REWARDLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        found = native.library.__wrapped__()
    assert isinstance(found, ctypes.CDLL)
    return found


@pytest.fixture(params=["this processor", "any processor"])
def products(request, monkeypatch):
    if request.param == "any processor":
        plain = request.getfixturevalue("for_any_processor")
        monkeypatch.setattr("rewardlab.policies.llama.native_steps.library", lambda: plain)


@compiled
@pytest.mark.parametrize("threads", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_steps_have_the_logits_of_the_rounded_weights(products, threads, monkeypatch, request):
    """One to nine rows. Tolerance: what is multiplied has 16 bits."""
    real = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    request.addfinalizer(lambda: torch.set_num_threads(real))
    model = Llama(SHAPE).initialise(torch.Generator().manual_seed(0))
    weights = int8.prepared(model, CPU, torch.float32)
    with torch.inference_mode():
        exact = fold(model, torch.float32)
        for layer, of in zip(exact.layers, weights.int8.layers, strict=True):
            for name in int8.MATRICES:
                setattr(layer, name, values(getattr(of, name)))
        exact.head, exact.embed = values(weights.int8.head), exact.embed.bfloat16().float()
        rng, slots = np.random.default_rng(0), 9
        ids = rng.integers(0, 512, slots)
        logits = []
        for steps in (Steps(model, Steps.prepared(exact), slots), Int8Steps(model, weights, slots)):
            steps.grow(8)
            logits.append([])
            for n in range(1, slots + 1):
                steps.admit(np.arange(slots), np.zeros(slots, np.int64))
                # a token after another, so that both read keys and values of the rounded weights
                for at in range(4):
                    found = steps.step(np.arange(n), (ids + at) % 512, np.full(slots, at))
                logits[-1].append(found)
        for wanted, found in zip(*logits, strict=True):
            torch.testing.assert_close(found, wanted, atol=5e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = Llama(SHAPE).initialise(torch.Generator().manual_seed(0))
    LlamaPolicy(model, tokenizer(), CPU, torch.float32).save(folder := tmp_path_factory.mktemp("model"))
    return folder


def drawn(policy, n=3, **sampling):
    problems = [ask(f"{i} + 2 = ?") for i in range(n)]
    rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return policy.extend(rows, Sampling(16, **sampling), torch.Generator().manual_seed(0))


@compiled
def test_a_model_with_int8_before_its_name_samples_with_rounded_weights_and_tells_their_log_probs(folder):
    plain, rough = (load_policy(f"{prefix}{folder}", "cpu", "float32") for prefix in ("", "int8:"))
    rows = drawn(rough)
    assert [t.turns[-1].ids.tolist() for t in rows] == [t.turns[-1].ids.tolist() for t in drawn(rough)]
    told = np.concatenate([t.turns[-1].logprobs for t in rows])
    scored = np.concatenate([s[-len(t.turns[-1].ids) :] for t, s in zip(rows, plain.score(rows), strict=True)])
    assert 0 < np.abs(told - scored).mean() < 0.02
    # texts are scored with the weights as they are
    assert all(np.array_equal(a, b) for a, b in zip(rough.score(rows), plain.score(rows), strict=True))


@compiled
def test_a_reply_does_not_depend_on_how_many_are_sampled_beside_it(folder):
    policy = load_policy(f"int8:{folder}", "cpu", "float32")
    few, many = drawn(policy, 1, temperature=0.0), drawn(policy, 80, temperature=0.0)
    assert few[0].turns[-1].ids.tolist() == many[0].turns[-1].ids.tolist()


@compiled
def test_nothing_learns_on_them(folder):
    with pytest.raises(RewardlabError, match="leave out int8: in training"):
        api.train("grpo", f"int8:{folder}", "arithmetic", steps=1)
    with pytest.raises(RewardlabError, match="leave out int8: in training"):
        api.train("grpo", load_policy(f"int8:{folder}", "cpu", "float32"), "arithmetic", steps=1)
    with pytest.raises(RewardlabError, match="leave out int8: in training"):
        api.plan("grpo", f"int8:{folder}", "arithmetic")
    with pytest.raises(RewardlabError, match="leave out int8: in training"):
        load_policy(f"int8:{folder}", "cpu", "float32", 4)
    policy = load_policy(f"int8:{folder}", "cpu", "float32")
    assert not any(p.requires_grad for p in policy.parameters())
    assert policy.copy("other").int8 is None


@compiled
def test_what_cannot_be_had_in_8_bits_is_refused_with_the_reason(folder, monkeypatch, words):
    odd = LlamaPolicy(Llama(SHAPE | {"intermediate_size": 48}), words, CPU, torch.float32)
    with pytest.raises(RewardlabError, match="multiples of 32: intermediate_size 48; leave out int8:"):
        odd.sample_in_int8()
    scorer = LlamaPolicy(Llama(SHAPE, value_head=True), words, CPU, torch.float32)
    with pytest.raises(RewardlabError, match="has a value head"):
        scorer.sample_in_int8()
    policy = load_policy(f"int8:{folder}", "cpu", "float32")
    changed = copy.copy(policy)
    changed._inserted = (0, lambda x: x)
    with pytest.raises(RewardlabError, match="inserted"):
        drawn(changed)
    monkeypatch.setattr(int8, "library", lambda: None)
    with pytest.raises(RewardlabError, match="need a C\\+\\+ compiler"):
        load_policy(f"int8:{folder}", "cpu", "float32")
