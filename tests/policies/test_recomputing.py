"""Gradient checkpointing: layers that are computed again in the backward pass give the same gradients, and keep less until then."""

from __future__ import annotations

import copy

import pytest
import torch
from checkpoints import checkpoint
from live_bytes import LiveBytes

from rewardlab import RewardlabError, load_policy, registry
from rewardlab.api.inputs import begin_run, policy_of
from rewardlab.core import Learner, Recipe
from rewardlab.models.embedded import tokenizer
from rewardlab.models.learners import learner_model
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.runs.config import RunConfig

IDS = torch.randint(3, 300, (3, 20), generator=torch.Generator().manual_seed(0))
LENGTH = torch.tensor([20, 7, 13])
# its layers drop out by a function that asks whether the layer itself trains, not a module inside
OPT = {"ffn_dim": 24, "dropout": 0.5, "word_embed_proj_dim": 16}


def load(folder, kind, rank=None):
    if kind == "hf":
        return HFPolicy.load(folder, "cpu", "float32", lora_rank=rank)
    policy = LlamaPolicy.load(folder, "cpu", "float32")
    return policy.adapt(rank) if rank else policy


def stirred(policy):
    """Fresh adapters add nothing, and half of their gradients are zero."""
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in policy.state().values():
            p += 0.1 * torch.randn(p.shape, generator=rng)
    return policy


def gradients(policy, recomputes):
    policy.recomputes = recomputes
    for p in policy.parameters():
        p.grad = None
    mask = torch.arange(IDS.shape[1]) < LENGTH[:, None]
    out = policy._forward(IDS, LENGTH, mask, ("logprobs", "entropy", "hidden"))
    (out.logprobs.sum() + out.entropy.sum() + out.hidden.square().mean()).backward()
    return {i: p.grad for i, p in enumerate(policy.parameters()) if p.grad is not None}


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize(
    ("kind", "architecture", "sizes"),
    [
        ("hf", "LlamaForCausalLM", {}), ("hf", "GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 2}),
        ("hf", "OPTForCausalLM", OPT), ("lean", "LlamaForCausalLM", {}), ("lean", "Qwen2ForCausalLM", {}),
    ],
)  # fmt: skip
def test_gradients_are_the_same(kind, architecture, sizes, rank, tmp_path, monkeypatch):
    # in C++ the lean policy keeps what it needs by itself
    monkeypatch.setattr(LlamaPolicy, "_layers_run_in_cpp", lambda policy, tokens: False)
    checkpoint(tmp_path, tokenizer(), architecture, **sizes)
    policy = load(tmp_path, kind, rank)
    plain, again = (gradients(stirred(policy) if not on else policy, on) for on in (False, True))
    assert plain.keys() == again.keys()
    assert len(again) == len(policy.state())
    assert all(torch.equal(plain[i], again[i]) for i in plain)
    assert max(float(g.abs().max()) for g in again.values()) > 0.01


@pytest.mark.parametrize("kind", ["hf", "lean"])
def test_a_change_between_the_layers_is_made_once(kind, tmp_path):
    checkpoint(tmp_path, tokenizer())
    policy, calls = load(tmp_path, kind), []

    def doubled(x):
        calls.append(len(x))
        return 2 * x

    with policy.inserted(0, doubled):
        plain, again = (gradients(policy, on) for on in (False, True))
    assert calls == [40, 40]
    assert all(torch.equal(plain[i], again[i]) for i in plain)


def test_after_a_pass_a_layer_is_what_it_was(tmp_path):
    """A copy of a layer would otherwise compute with the layer that it was copied from."""
    checkpoint(tmp_path, tokenizer())
    policy = load(tmp_path, "hf")
    gradients(policy, True)
    assert all("forward" not in vars(module) for module in policy.model.modules())
    other = stirred(policy.copy("other"))
    assert other.recomputes
    before, after = gradients(policy, False), gradients(other, True)
    assert not torch.equal(before[3], after[3])
    assert torch.equal(gradients(copy.copy(other), False)[3], after[3])


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("kind", ["hf", "lean"])
def test_what_stays_for_the_backward_pass_is_what_the_layers_read(kind, rank, tmp_path):
    """And no more than the sums of `--dry-run` say: there 512 tokens of 6 layers keep a sixth to a tenth of what they did."""
    checkpoint(
        tmp_path, tokenizer(), num_hidden_layers=6, hidden_size=64, intermediate_size=192, num_attention_heads=4, head_dim=16,
    )  # fmt: skip
    policy, (ids, length) = load(tmp_path, kind, rank), (torch.randint(3, 300, (4, 128)), torch.full((4,), 128))
    nobody = torch.zeros(4, 128, dtype=torch.bool)
    kept = {}
    for policy.recomputes in (False, True):
        with LiveBytes() as live:
            out = policy._forward(ids, length, nobody, ("hidden",))
            kept[policy.recomputes] = live.now, policy.activation_bytes(512)
            out.hidden.sum().backward()
    (plain, planned), (again, planned_again) = kept[False], kept[True]
    # what the lean policy adds to its matrices stays for the whole pass
    adapted = 4 * sum(getattr(layer, k).numel() for layer in policy.model.layers for k in layer.adapters) if kind == "lean" else 0
    layers, hidden = 6 * 512 * 64 * 4, 2 * 512 * 64 * 4
    assert layers <= again - adapted < layers + 3 * hidden
    assert again - adapted < planned_again < 0.35 * planned
    assert 0.4 * planned < plain - adapted < 1.1 * planned


def test_the_setting_reaches_policy_critic_and_reference(tmp_path):
    checkpoint(tmp_path, tokenizer())
    config = RunConfig(model=f"hf:{tmp_path}", device="cpu", dtype="float32", gradient_checkpointing=True)
    task = registry.task("arithmetic", test_size=2)
    policy = policy_of(None, config, task)
    run = begin_run(registry.build("ppo", {"beta": 0.1}), policy, task, config)
    assert [m.recomputes for m in (policy, run.reference, *run.models.values())] == [True] * 3
    # one that is loaded from elsewhere too
    other = learner_model(Learner("judge", init=str(tmp_path), recipe=Recipe()), policy)
    assert other.recomputes
    assert "gradient_checkpointing" not in RunConfig().to_json()
    assert RunConfig.from_json(config.to_json()).gradient_checkpointing


def test_where_it_does_nothing_it_is_refused():
    with pytest.raises(RewardlabError, match="language models; this policy is a Actor"):
        policy_of(None, RunConfig(task="pointmass", gradient_checkpointing=True), registry.task("pointmass"))
    with pytest.raises(RewardlabError, match="--trl gradient_checkpointing=true"):
        RunConfig(engine="trl", gradient_checkpointing=True)
    assert not load_policy("untrained", task=registry.task("arithmetic")).recomputes
