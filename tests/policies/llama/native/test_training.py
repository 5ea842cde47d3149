"""Layers in C++ give the outputs and gradients of PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.policies.llama import policy as policies
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.library import library
from rewardlab.policies.llama.native.training import layers
from rewardlab.policies.llama.policy import LlamaPolicy

CPU = torch.device("cpu")
SMALL = {
    "model_type": "llama", "vocab_size": 512, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    if library() is None:
        pytest.skip("no C++ compiler")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def policy_of(words, value_head=False, **changes):
    generator, model = torch.Generator().manual_seed(0), Llama(SMALL | changes, value_head)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + (p.dim() == 1))
    return LlamaPolicy(model, words, CPU, torch.float32)


def batch_of(*groups):
    """Groups of (tokens of the shared prompt, tokens of each reply ...)."""
    rng = np.random.default_rng(0)

    def group(prompt, *replies):
        first = rng.integers(1, 512, prompt)
        turns = [(Turn(None, first), Turn("policy", rng.integers(1, 512, n))) for n in replies]
        return [Trajectory(ask("?"), row, "end") for row in turns]

    return collate([group(*sizes) for sizes in groups], None, CPU)


MANY = [(5 + g % 7, 3 + g, 9, 20 - g % 11) for g in range(12)]
BATCHES = {
    "shared prompts": [(9, 5, 1, 12), (14, 4, 4), (3, 30)],
    "nothing shared": [(9, 5), (1, 30), (40, 2)],
    "several blocks": MANY,
    "one token": [(1, 1)],
}


def told(policy, batch, of):
    """What the policy says, and the gradients of a function of it."""
    policy.model.zero_grad()
    out = policy.evaluate(batch, ("value", "hidden") if policy.model.value_head is not None else ("logprobs", "entropy", "hidden"))
    of(out.tensors()).backward()
    return out.tensors(), {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


def some_function(tables):
    generator = torch.Generator().manual_seed(0)
    return sum((x * torch.randn(x.shape, generator=generator)).sum() for x in tables.values())


def check_as_in_pytorch(policy, batch, monkeypatch, of=some_function):
    used = []
    monkeypatch.setattr(policies.training, "layers", lambda *args: (used.append(True), layers(*args))[1])
    found, gradients = told(policy, batch, of)
    assert used
    monkeypatch.setattr(policies, "runs_in_cpp", lambda policy: False)
    wanted, wanted_gradients = told(policy, batch, of)
    assert len(used) == 1
    for name, table in wanted.items():
        torch.testing.assert_close(found[name], table, atol=2e-5, rtol=1e-5)
    assert gradients.keys() == wanted_gradients.keys()
    for name, g in wanted_gradients.items():
        norm = g.norm().clamp(min=1e-30)
        torch.testing.assert_close(gradients[name] / norm, g / norm, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("groups", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("value_head", [False, True])
def test_outputs_and_gradients_are_those_of_pytorch(words, groups, value_head, monkeypatch):
    check_as_in_pytorch(policy_of(words, value_head), batch_of(*groups), monkeypatch)


@pytest.mark.parametrize(
    "changes", [{"head_dim": 32}, {"head_dim": 64, "num_key_value_heads": 1}, {"head_dim": 128}, {"num_key_value_heads": 4}]
)
def test_heads_of_all_sizes_and_shares_are_as_in_pytorch(words, changes, monkeypatch):
    check_as_in_pytorch(policy_of(words, **changes), batch_of(*BATCHES["shared prompts"]), monkeypatch)


def test_adapters_get_their_gradients(words, monkeypatch):
    policy = policy_of(words).adapt(2)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.1)
    check_as_in_pytorch(policy, batch_of(*BATCHES["shared prompts"]), monkeypatch)


@pytest.mark.parametrize("rows", [[], [3], [0, 1, 2, 30, 35]], ids=str)
def test_texts_that_nothing_is_learnt_from_do_not_count(words, rows, monkeypatch):
    """Backward leaves them out: a group whose replies all got one reward, for instance."""
    check_as_in_pytorch(policy_of(words), batch_of(*MANY), monkeypatch, lambda tables: tables["logprobs"][rows].sum())


def test_a_token_within_a_text_may_be_all_that_counts(words, monkeypatch):
    check_as_in_pytorch(policy_of(words), batch_of(*MANY), monkeypatch, lambda tables: tables["logprobs"][7, 12])


def test_the_same_batch_gives_the_same_bits(words):
    policy, batch = policy_of(words), batch_of(*MANY)
    (first, gradients), (second, again) = (told(policy, batch, some_function) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(torch.equal(gradients[name], again[name]) for name in gradients)


def test_what_the_layers_do_not_know_is_left_to_pytorch(words, monkeypatch):
    monkeypatch.setattr(policies.training, "layers", None)
    batch = batch_of((3, 4, 5))
    for family in ({"model_type": "qwen2"}, {"model_type": "qwen3"}, {"head_dim": 24}):
        policy_of(words, **family).evaluate(batch).logprobs.sum().backward()
    small = policy_of(words)
    LlamaPolicy(small.model, words, CPU, torch.bfloat16).evaluate(batch)
    torch.set_num_threads(2)
    small.evaluate(batch)
    torch.set_num_threads(1)
    with pytest.raises(TypeError):
        small.evaluate(batch)


def test_without_gradient_the_layers_run_in_cpp_unless_they_would_keep_too_much(words, monkeypatch):
    policy, batch = policy_of(words), batch_of(*MANY)
    with torch.no_grad():
        found = policy.evaluate(batch).logprobs
    assert torch.equal(found, policy.evaluate(batch).logprobs)
    monkeypatch.setattr(policies, "KEPT_IN_VAIN", 0)
    monkeypatch.setattr(policies.training, "layers", None)
    with torch.no_grad():
        torch.testing.assert_close(policy.evaluate(batch).logprobs, found, atol=2e-5, rtol=1e-5)
