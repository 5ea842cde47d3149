"""Adapters on models with experts, whose matrices transformers keeps in one table for each layer."""

from __future__ import annotations

import pytest
import torch
import transformers
from checkpoints import checkpoint

from rewardlab import load_policy
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.policies.hf.adapters import tables

RANK = 2
FAMILIES = {
    "Qwen3MoeForCausalLM": {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2},
    "MixtralForCausalLM": {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
}


@pytest.fixture(params=FAMILIES)
def folder(request, tmp_path, words):
    checkpoint(tmp_path / "base", words, request.param, **FAMILIES[request.param])
    return tmp_path / "base"


def adapted(folder, dtype="float32"):
    """The checkpoint with adapters that add something everywhere."""
    policy = load_policy(str(folder), "cpu", dtype, RANK)
    with torch.no_grad():
        for p in policy.state().values():
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    return policy


def asked(policy):
    problems = [ask(q) for q in ("1 + 2 = ?", "what is 12 * 3?", "2")]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def distance(a, b):
    return max(float(abs(x - y).max()) for x, y in zip(a, b, strict=True))


def test_what_is_sampled_is_what_is_trained(folder):
    policy = adapted(folder)
    rows = policy.extend(asked(policy), Sampling(8), torch.Generator().manual_seed(0))
    drawn = [t.turns[-1].logprobs for t in rows]
    assert distance(drawn, [s[-len(x) :] for s, x in zip(policy.score(rows), drawn, strict=True)]) < 1e-4
    plain = load_policy(str(folder), "cpu", "float32")
    assert distance(policy.score(rows), plain.score(rows)) > 0.1


def test_in_16_bits_it_samples_too(folder):
    policy = adapted(folder, "bfloat16")
    rows = policy.extend(asked(policy), Sampling(8), torch.Generator().manual_seed(0))
    assert all(len(t.turns[-1].ids) for t in rows)


def test_a_saved_adapter_is_trained_on_and_merged(folder, tmp_path):
    policy = adapted(folder)
    rows = policy.write(asked(policy), ["3", "it is 36", "2"])
    policy.save(tmp_path / "adapter")
    again, merged = (load_policy(str(tmp_path / "adapter"), "cpu", "float32", rank) for rank in (RANK, None))
    assert all(torch.equal(again.state()[k], v) for k, v in policy.state().items())
    assert distance(policy.score(rows), again.score(rows)) == 0
    assert distance(policy.score(rows), merged.score(rows)) < 1e-4
    merged.save(tmp_path / "whole")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.float32).eval()
    ids = torch.from_numpy(rows[1].ids)[None]
    with torch.no_grad():
        logprobs = theirs(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None]).squeeze(1)
    assert float((logprobs - torch.from_numpy(policy.score(rows)[1][1:])).abs().max()) < 1e-4


def test_weights_below_adapters_have_their_names_in_the_checkpoint(folder):
    policy, plain = adapted(folder), load_policy(str(folder), "cpu", "float32")
    found, wanted = dict(policy.named_weights()), dict(plain.named_weights())
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[k], v) for k, v in wanted.items())


def test_peft_warns_of_nothing_that_is_so_by_design(folder, tmp_path, recwarn):
    adapted(folder).save(tmp_path / "adapter")
    load_policy(str(tmp_path / "adapter"), "cpu", "float32", RANK)
    assert [str(w.message) for w in recwarn if "pattern keys" in str(w.message) or "checkpointing" in str(w.message)] == []


def test_the_tables_with_adapters_added_count_as_memory(folder):
    policy = adapted(folder)
    # of two layers: four experts of three matrices of 16 x 24, and what chooses among them; float32, as is all else
    assert sum(map(torch.numel, tables(policy.whole))) == 2 * (4 * 3 * 16 * 24 + 4 * 16)
    layers = 2 * (16 * 16 + 16 * 8 + 16 * 8 + 16 * 16)
    assert policy.copy_bytes(sampling=True) == 4 * (layers + 2 * (4 * 3 * 16 * 24 + 4 * 16))
    assert policy.copy_bytes(sampling=False) == 4 * 2 * (4 * 3 * 16 * 24 + 4 * 16)
