"""Adapters of the lean decoder are peft's: same numbers, same gradients, frozen weights that stay."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Sampling, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.rewards.reward import reward

RANK = 3
HF = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",),
}  # fmt: skip
SMALL = {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "max_position_embeddings": 64, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    untrained().save(path)
    return path


@reward
def first_letter(trajectory) -> float:
    return ord(trajectory.reply[0]) % 7 if trajectory.reply else 0.0


def stirred(policy: LlamaPolicy) -> LlamaPolicy:
    """With adapters that add something."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in policy.model.named_parameters():
            if name.endswith(".B"):
                p.normal_(0, 0.1, generator=generator)
    return policy


def adapted(folder) -> LlamaPolicy:
    return stirred(load_policy(str(folder), "cpu", "float32", RANK))


def said_by(policy) -> torch.Tensor:
    """Log-probs of three recorded replies."""
    turns = [(Turn(None, np.arange(5) + k), Turn("policy", np.arange(9) * 7 + 10 * k)) for k in range(3)]
    rows = [[Trajectory(ask("1+1?", "2"), two)] for two in turns]
    return policy.evaluate(collate(rows, None, policy.device)).logprobs


def same_adapters(lean: LlamaPolicy, hf) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Copy the adapters of `lean` into peft's; pairs of (a part of ours, peft's)."""
    theirs, pairs = dict(hf.whole.named_parameters()), []
    for i, layer in enumerate(lean.model.layers):
        for name, parts in HF.items():
            ours = layer.adapters[name]
            for part, a, b in zip(parts, ours.A.split(RANK), ours.B.split(ours.heights), strict=True):
                at = f"base_model.model.model.layers.{i}.{part}"
                pairs += [(a, theirs[f"{at}.lora_A.default.weight"]), (b, theirs[f"{at}.lora_B.default.weight"])]
    with torch.no_grad():
        for a, b in pairs:
            b.copy_(a)
    return pairs


def test_numbers_and_gradients_are_those_of_peft(folder):
    pytest.importorskip("peft")
    lean, hf = adapted(folder), load_policy(f"hf:{folder}", "cpu", "float32", RANK)
    pairs = same_adapters(lean, hf)
    said = [said_by(policy) for policy in (lean, hf)]
    torch.testing.assert_close(said[0], said[1], atol=1e-5, rtol=1e-5)
    ours = torch.autograd.grad(said[0].sum(), [p for p in lean.parameters() if p.requires_grad])
    theirs = torch.autograd.grad(said[1].sum(), [b for _, b in pairs])
    assert sum(g.numel() for g in ours) == sum(g.numel() for g in theirs)
    found = dict(zip([id(p) for p in lean.parameters() if p.requires_grad], ours, strict=True))
    flat = [x for layer in lean.model.layers for name in HF for x in _parts(layer.adapters[name], found)]
    for a, b in zip(flat, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def _parts(adapter, gradient):
    a, b = gradient[id(adapter.A)].split(RANK), gradient[id(adapter.B)].split(adapter.heights)
    return [x for pair in zip(a, b, strict=True) for x in pair]


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_gradients_of_adapters_are_those_of_their_matrices_carried_over(family, words, monkeypatch):
    """For W' = W + scale B A and the gradient G of W': scale B^T G is A's, and scale G A^T is B's."""
    model = Llama(SMALL | {"model_type": family}).initialise(torch.Generator().manual_seed(0))
    policy = stirred(LlamaPolicy(model, words, torch.device("cpu"), torch.float32).adapt(RANK))
    whole = copy.deepcopy(policy).merge()
    for one in (policy, whole):
        # the C++ reads the matrices themselves
        monkeypatch.setattr(one, "_layers_run_in_cpp", lambda tokens: False)
        said_by(one).square().sum().backward()
    for layer, plain in zip(policy.model.layers, whole.model.layers, strict=True):
        for name, adapter in layer.adapters.items():
            assert getattr(layer, name).grad is None
            of_a, of_b = adapter.A.grad.split(RANK), adapter.B.grad.split(adapter.heights)
            of_matrix = getattr(plain, name).grad.split(adapter.heights)
            for (a, b), g, got_a, got_b in zip(adapter.pairs(), of_matrix, of_a, of_b, strict=True):
                torch.testing.assert_close(got_a, adapter.scale * b.T @ g, atol=1e-4, rtol=1e-4)
                torch.testing.assert_close(got_b, adapter.scale * g @ a.T, atol=1e-4, rtol=1e-4)


def test_adapters_that_change_before_the_backward_pass_are_noticed(folder, monkeypatch):
    policy = adapted(folder)
    monkeypatch.setattr(policy, "_layers_run_in_cpp", lambda tokens: False)
    said = said_by(policy)
    with torch.no_grad():
        policy.model.layers[0].adapters["out"].A.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        said.sum().backward()


def test_fresh_adapters_add_nothing_and_are_the_same_each_time(folder):
    plain, fresh, again = (load_policy(str(folder), "cpu", "float32", rank) for rank in (None, RANK, RANK))
    assert torch.equal(said_by(plain), said_by(fresh))
    assert all(torch.equal(again.state()[k], v) for k, v in fresh.state().items())
    assert all(k.endswith((".A", ".B")) for k in fresh.state())


def test_it_draws_with_its_adapters_and_saves_them_merged(folder, tmp_path):
    policy = adapted(folder)
    prompts = [Trajectory(ask("1+1?", "2"), (Turn(None, np.arange(5)),))] * 4
    drawn = policy.extend(prompts, Sampling(8, 1.0), torch.Generator().manual_seed(0))
    for t, scored in zip(drawn, policy.score(drawn), strict=True):
        np.testing.assert_allclose(t.column("logprobs")[t.mask], scored[t.mask], atol=1e-4)
    policy.save(tmp_path)
    merged = load_policy(str(tmp_path), "cpu", "float32")
    torch.testing.assert_close(said_by(merged), said_by(policy), atol=1e-5, rtol=0)
    assert len(policy.model.layers[0].adapters) == 4  # saving leaves the policy as it is


def test_copies_share_what_is_frozen_and_own_what_trains(folder):
    policy = adapted(folder)
    twin, critic = policy.copy("reference"), policy.copy("critic", value_head=True)
    for other in (twin, critic):
        shared = {p.data_ptr() for p in policy.parameters()} & {p.data_ptr() for p in other.parameters()}
        assert shared == {p.data_ptr() for p in policy.parameters() if not p.requires_grad}
    assert critic.model.value_head.requires_grad


def test_a_run_moves_and_keeps_adapters_alone(folder, tmp_path):
    how = {"eval_problems": 4, "eval_every": 2, "max_new": 6, "device": "cpu", "dtype": "float32", "lora_rank": RANK}
    recipe = registry.build("grpo", {"n": 4}).but(problems=2, lr=1e-2, reward=first_letter())
    done = train(recipe, str(folder), "arithmetic", steps=2, out=tmp_path / "run", **how)
    policy, base = done.run.policy, dict(load_policy(str(folder), "cpu", "float32").model.named_parameters())
    assert all(torch.equal(p, base[k]) for k, p in policy.model.named_parameters() if not p.requires_grad)
    kept = load_file(max((tmp_path / "run" / "checkpoints").rglob("policy.safetensors")))
    assert kept.keys() == policy.state().keys()
    assert any(bool(p.any()) for k, p in kept.items() if k.endswith(".B"))
    written = load_policy(str(tmp_path / "run" / "model"), "cpu", "float32")
    torch.testing.assert_close(said_by(written), said_by(policy), atol=1e-5, rtol=0)


def test_models_without_language_are_refused():
    with pytest.raises(RewardlabError, match="--lora-rank is for language models"):
        load_policy("untrained", lora_rank=4, task=registry.task("pointmass"))
