"""Prompts that rows have in common are computed once: outputs and gradients are those of computing them for each row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.policies.llama import attention, layout
from rewardlab.policies.llama.layout import Layout, SharedLayout, shared_prompts
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.packing import rounded

CPU = torch.device("cpu")
SMALL = {
    "model_type": "qwen3", "vocab_size": 512, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}  # fmt: skip
WANTS = ("logprobs", "entropy", "hidden")


def policy_of(words, value_head=False):
    generator, model = torch.Generator().manual_seed(0), Llama(SMALL, value_head)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + (p.dim() == 1))
    return LlamaPolicy(model, words, CPU, torch.float32)


def text(prompt, *turns, seed):
    """A prompt of given length (its ids follow from `prompt` alone), then decisions (positive lengths) and answers (negative)."""
    rng = np.random.default_rng(seed)
    first = np.random.default_rng(prompt).integers(1, 512, prompt)
    rest = [Turn("policy" if n > 0 else None, rng.integers(1, 512, abs(n))) for n in turns]
    return Trajectory(ask("?"), (Turn(None, first), *rest), "end")


GROUPS = {
    "one prompt": [[text(9, n, seed=n) for n in (5, 1, 12, 7)]],
    "ragged prompts": [[text(p, n, seed=n) for n in (3, 8, 5)] for p in (4, 17, 9)],
    "of one length": [[text(11, n, seed=9 + n) for n in (6, 6, 6)] for _ in range(2)],
    "several turns": [[text(12, 3, -4, 5, seed=s) for s in range(3)], [text(7, 2, -9, 2, seed=s) for s in range(2)]],
    "some alone": [[text(20, 4, seed=1), text(20, 6, seed=2)], [text(15, 9, seed=3)], [text(2, 30, seed=4)]],
    "an unlike one between": [[text(10, 4, seed=1), text(10, 5, seed=2), text(13, 4, seed=3), text(10, 6, seed=4)]],
    "nothing but prompts": [[text(10, seed=1), text(10, seed=2), text(10, seed=3)]],
    "without decisions": [[text(10, seed=1), text(10, seed=2)], [text(10, 4, seed=3), text(10, 5, seed=4)]],
}


def told(policy, batch, wants, seed=0):
    """Everything the policy says, and the gradients of some random function of it."""
    policy.model.zero_grad()
    out = policy.evaluate(batch, wants).tensors()
    generator = torch.Generator().manual_seed(seed)
    sum((x * torch.randn(x.shape, generator=generator)).sum() for x in out.values()).backward()
    return out, {name: p.grad for name, p in policy.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_outputs_and_gradients_are_those_of_each_row_by_itself(words, groups, fused, monkeypatch):
    monkeypatch.setattr(attention, "SQUARE_ELEMENTS", 0 if fused else 1 << 25)
    batch = collate(groups, None, CPU)
    assert isinstance(layout.layout(batch.ids, batch.length, batch.mask), SharedLayout)
    for policy, wants in ((policy_of(words), WANTS), (policy_of(words, value_head=True), ("value", "hidden"))):
        monkeypatch.setattr(layout, "LEAST_SAVED", 0.0)
        found, found_grads = told(policy, batch, wants)
        monkeypatch.setattr(layout, "LEAST_SAVED", 2.0)
        wanted, wanted_grads = told(policy, batch, wants)
        assert found.keys() == wanted.keys()
        for name in wanted:
            torch.testing.assert_close(found[name], wanted[name], atol=2e-5, rtol=1e-5)
        assert found_grads.keys() == wanted_grads.keys()
        for name, grad in wanted_grads.items():
            torch.testing.assert_close(found_grads[name] / grad.norm(), grad / grad.norm(), atol=1e-5, rtol=1e-5)


def test_common_prompts_are_found_by_their_ids_before_the_first_decision():
    ids = torch.tensor([[5, 6, 7, 1], [5, 6, 8, 2], [5, 6, 9, 0], [5, 6, 9, 4], [4, 6, 1, 1], [4, 6, 1, 1]])
    mask = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]]).bool()
    shared, owner, heads = shared_prompts(ids, torch.tensor([4, 4, 3, 4, 4, 4]), mask)
    assert shared.tolist() == [2, 2, 2, 0, 0, 0]
    assert owner.tolist() == [0, 0, 0, 1, 2, 2]
    assert heads.tolist() == [0, 3, 4]


def test_each_common_token_is_computed_once():
    ids = torch.tensor([[5, 6, 7, 1], [5, 6, 8, 0], [3, 3, 3, 3]])
    length, mask = torch.tensor([4, 3, 4]), torch.tensor([[0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1]]).bool()
    tokens = layout.layout(ids, length, mask)
    assert tokens.ids.tolist() == [5, 6, 7, 1, 8, 3, 3, 3, 3]
    assert tokens.positions.tolist() == [0, 1, 2, 3, 2, 0, 1, 2, 3]
    assert tokens.table(tokens.ids).tolist() == [[5, 6, 7, 1], [5, 6, 8, 0], [3, 3, 3, 3]]
    assert tokens.flat_of(torch.tensor([0, 1, 5, 6, 11])).tolist() == [0, 1, 1, 4, 8]


def test_little_in_common_is_left_as_it_is():
    batch = collate([[text(3, 40, seed=1), text(3, 40, seed=2)]], None, CPU)
    assert type(layout.layout(batch.ids, batch.length, batch.mask)) is Layout


def test_sizes_of_products_come_again_and_rounding_them_up_costs_little():
    sizes = {rounded(n) for n in range(4096, 8192)}
    assert len(sizes) == 33
    assert all(n <= rounded(n) <= 1.04 * n for n in range(1, 20000))
    assert [rounded(n) for n in (0, 1, 63, 64, 65, 5000)] == [0, 1, 63, 64, 66, 5120]
