"""Frozen matrices below adapters, kept in bfloat16: half the bytes, and the numbers of a float32 copy to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import checkpoint
from safetensors.torch import load_file, save_file

from rewardlab import api, load_policy, registry, resume
from rewardlab.api import train
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.rewards.reward import reward
from tests.helpers.tiers import one_in

RANK = 3
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "tie_word_embeddings": True}
GEMMA = {"head_dim": 8, "tie_word_embeddings": True}
EXPERTS = {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2}
KINDS = {
    "lean": ("", "Qwen2ForCausalLM", {}), "lean, tied": ("", "LlamaForCausalLM", {"tie_word_embeddings": True}),
    "hf": ("hf:", "Qwen2ForCausalLM", {}), "gpt2": ("", "GPT2LMHeadModel", GPT2),
    "scaled embeddings": ("", "Gemma3ForCausalLM", GEMMA), "experts": ("", "Qwen3MoeForCausalLM", EXPERTS),
}  # fmt: skip


def stored(folder, dtype=torch.bfloat16):
    """The checkpoint in a folder with its weights in this format."""
    file = folder / "model.safetensors"
    save_file({k: v.to(dtype) for k, v in load_file(file).items()}, file, metadata={"format": "pt"})
    return folder


@pytest.fixture
def make(tmp_path, words):
    """(kind, format of the checkpoint) -> the policy's name, and one of it with adapters that add something, and what it would be
    with float32 below."""

    def both(kind, dtype=torch.bfloat16):
        prefix, architecture, config = KINDS[kind]
        checkpoint(tmp_path, words, architecture, **config)
        name = f"{prefix}{stored(tmp_path, dtype)}"
        kept, plain = (stirred(load_policy(name, "cpu", dtype, RANK)) for dtype in ("bfloat16", "float32"))
        if isinstance(plain, LlamaPolicy):
            plain.dtype = torch.bfloat16
        else:
            plain = HFPolicy(plain.whole, plain.tokenizer, plain.device, torch.bfloat16)
        # fresh adapters on 16 bits have random numbers of 16 bits
        plain.load_state(kept.state())
        return name, kept, plain

    return both


def stirred(policy):
    with torch.no_grad():
        for p in policy.state().values():
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    return policy


def rows_of(policy):
    asked = [ask(q) for q in ("1 + 2 = ?", "what is 12 * 3?")]
    return policy.write(policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked]), ["3", "it is 36, surely"])


def pass_of(policy):
    """Log-probs of recorded rows, and the gradients of what trains."""
    found = policy.evaluate(collate([[t] for t in rows_of(policy)], None, policy.device)).logprobs
    trained = [p for p in policy.parameters() if p.requires_grad]
    return [found, *torch.autograd.grad(found.square().sum(), trained)]


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_checkpoint_in_16_bits_nothing_changes_but_its_bytes(kind, make):
    _, kept, plain = make(kind)
    frozen = [p for p in kept.parameters() if not p.requires_grad]
    matrices = [p for p in frozen if p.dim() > 1]
    assert {p.dtype for p in kept.parameters() if p.requires_grad} == {torch.float32}
    assert {p.dtype for p in frozen if p.dim() == 1} == {torch.float32}
    small = sum(p.numel() for p in matrices if p.dtype == torch.bfloat16)
    # embeddings that scale what they look up stay as they are, with the head that is tied to them, and what chooses experts
    as_before = {"scaled embeddings": kept.vocabulary_head().numel(), "experts": 2 * 4 * 16}
    assert small == sum(p.numel() for p in matrices) - as_before.get(kind, 0)
    passes = pass_of(kept), pass_of(plain)
    if kind == "experts":
        # transformers multiplies their tables in the tables' format: before in float32 in the midst of bfloat16
        assert float((passes[0][0] - passes[1][0]).abs().mean()) < 0.02 * float(passes[1][0].abs().mean())
        return
    assert all(torch.equal(a, b) for a, b in zip(*passes, strict=True))
    drawn = [p.extend(rows_of(p), Sampling(12), torch.Generator().manual_seed(0)) for p in (kept, plain)]
    for a, b in zip(*drawn, strict=True):
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.turns[-1].logprobs, b.turns[-1].logprobs)
    scores = [p.score(rows_of(kept)) for p in (kept, plain)]
    assert all(np.array_equal(a, b) for a, b in zip(*scores, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_the_float32_sum(kind, make, tmp_path):
    _, kept, plain = make(kind)
    kept.base = plain.base = None
    kept.save(tmp_path / "kept")
    plain.save(tmp_path / "plain")
    found, wanted = (load_file(tmp_path / name / "model.safetensors") for name in ("kept", "plain"))
    assert found.keys() == wanted.keys()
    assert all(found[k].dtype == torch.float32 and torch.equal(found[k], w) for k, w in wanted.items())
    configs = [(tmp_path / name / "config.json").read_text() for name in ("kept", "plain")]
    assert configs[0] == configs[1]


@pytest.mark.parametrize("kind", ["lean", "lean, tied", "hf", "gpt2"])
def test_an_adapter_is_merged_into_the_checkpoints_own_numbers(kind, make, tmp_path):
    """Also where these are float32 and the run kept them in bfloat16."""
    name, kept, _ = make(kind, torch.float32)
    exact = load_policy(name, "cpu", "float32", RANK)
    exact.load_state(kept.state())
    kept.save(tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_model.safetensors").is_file()
    saved = f"{KINDS[kind][0]}{tmp_path / 'adapter'}"
    again = load_policy(saved, "cpu", "bfloat16", RANK)
    assert all(torch.equal(again.state()[k], v) for k, v in kept.state().items())
    merged = dict(load_policy(saved, "cpu", "bfloat16").named_weights())
    exact.base = None
    exact.save(tmp_path / "whole")
    assert all(torch.equal(merged[k].float(), v) for k, v in load_file(tmp_path / "whole" / "model.safetensors").items())


@pytest.mark.parametrize("kind", ["lean, tied", "hf"])
def test_hidden_states_in_float32_meet_a_head_in_16_bits(kind, make):
    _, kept, plain = make(kind)
    batch = collate([[t] for t in rows_of(kept)], None, kept.device)
    hidden = kept.evaluate(batch, ("hidden",)).hidden[batch.mask].detach()
    found, wanted = (p.divergences(hidden, other, 2 * hidden) for p, other in ((kept, plain), (plain, plain)))
    assert torch.equal(found, wanted)
    assert torch.equal(kept.likeliest(hidden, 3)[1], plain.likeliest(hidden, 3)[1])
    assert torch.equal(kept.token_embeddings().float(), plain.token_embeddings())


@reward
def evenness(trajectory) -> float:
    return float(np.mean(trajectory.ids[trajectory.mask] % 2 == 0))


@pytest.mark.parametrize("kind", one_in(2, ["lean", "hf"]))
def test_a_run_goes_on_bit_for_bit_and_is_exported_in_the_checkpoints_format(kind, make, tmp_path):
    name, *_ = make(kind)
    recipe = registry.build("grpo", {"n": 4, "problems": 2, "lr": 1e-2})
    how = {
        "device": "cpu", "dtype": "bfloat16", "lora_rank": RANK, "max_new": 6, "eval_problems": 2, "eval_every": 2,
        "checkpoint_every": 2,
    }  # fmt: skip
    whole = train(recipe.but(reward=evenness()), name, "arithmetic", steps=4, out=tmp_path / "whole", **how)
    train(recipe.but(reward=evenness()), name, "arithmetic", steps=2, out=tmp_path / "parts", **how)
    again = resume(tmp_path / "parts", steps=4)
    assert all(torch.equal(again.run.policy.state()[k], v) for k, v in whole.run.policy.state().items())
    assert any(bool(v.any()) for k, v in whole.run.policy.state().items() if k.endswith((".B", "lora_B.default.weight")))
    done = api.export(tmp_path / "whole", tmp_path / "model", last=True)
    assert done["dtype"] == "bfloat16"
