"""Keys and values that outlive a call of transformers' `generate`: the same replies, and no more computed than what is new."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Message, Sampling
from rewardlab.policies.hf.kept import laid_out
from rewardlab.policies.hf.sampling import Sampler
from rewardlab.policies.kept import Block, Found
from tests.policies.hf.test_hf import folder as folder  # a fixture
from tests.policies.hf.test_hf import load, prompts, stirred
from tests.policies.llama.test_kept import LONG, same, talk


@pytest.fixture
def reads():
    """(rows, columns) of each forward pass of a policy's trunk that reads more than one column."""
    shapes = []

    def of(policy):
        def note(module, args, given):
            if given["input_ids"].shape[1] > 1:
                shapes.append(tuple(given["input_ids"].shape))

        policy.model.base_model.register_forward_pre_hook(note, with_kwargs=True)
        return shapes

    return of


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(("family", "rank"), [("llama", None), ("qwen2", None), ("olmo2", None), ("llama", 2)])
def test_replies_are_those_of_texts_that_are_computed_anew(family, rank, static, folder, reads):
    policy = load(folder(family, max_position_embeddings=512), lora_rank=rank)
    policy.static_cache, shapes = static, reads(policy)
    if rank:
        stirred(policy)
    rows = prompts(policy, LONG)
    wanted = talk(policy, rows, temperature=1.0)
    anew = sum(rows * columns for rows, columns in shapes)
    shapes.clear()
    with policy.keeping():
        found = talk(policy, rows, temperature=1.0)
    same(found, wanted)
    if not rank:
        # with adapters the merged copy computes, which the hook does not see
        assert sum(rows * columns for rows, columns in shapes) < anew / 1.5


def test_rows_of_several_calls_and_replies_of_unlike_length_are_found_again(folder, monkeypatch):
    monkeypatch.setattr("rewardlab.policies.hf.generating.ROWS", 4)
    policy = load(folder("llama", max_position_embeddings=512))
    policy.ends = frozenset(range(0, 512, 5))
    rows = prompts(policy, [q for q in LONG for _ in range(2)])
    wanted = talk(policy, rows, temperature=1.0)
    assert len({len(t.turns[1].ids) for t in wanted}) > 2
    with policy.keeping():
        same(talk(policy, rows, temperature=1.0), wanted)


def test_rows_of_which_nothing_is_kept_are_sampled_apart(folder, reads):
    policy = load(folder("llama", max_position_embeddings=512))
    shapes, rng = reads(policy), torch.Generator()
    old, new = prompts(policy, LONG[:2]), prompts(policy, LONG[2:4])
    # two replies to each: the text as a whole is read once
    first = policy.extend([old[0], old[0], old[1], old[1]], Sampling(8, 0.0), rng)
    again = [*policy.read(first, [(Message("user", "so be it"),)] * 4), *new]
    wanted = policy.extend(again, Sampling(8, 0.0), rng)
    with policy.keeping():
        policy.extend([old[0], old[0], old[1], old[1]], Sampling(8, 0.0), rng)
        shapes.clear()
        same(policy.extend(again, Sampling(8, 0.0), rng), wanted)
    rests = max(len(t.ids) - len(o.ids) for t, o in zip(again[:4], first, strict=True)) + 1
    assert shapes == [(2, max(len(t.ids) for t in new)), (4, rests)]


def test_other_weights_compute_anew_and_a_window_keeps_nothing(folder):
    policy = load(folder("llama", max_position_embeddings=512))
    rows, rng = prompts(policy, LONG), torch.Generator()
    with policy.keeping():
        policy.extend(rows, Sampling(8, 0.0), rng)
        with torch.no_grad():
            policy.model.lm_head.weight.neg_()
        found = policy.extend(rows, Sampling(8, 0.0), rng)
        assert policy._kept is not None
    assert policy._kept is None
    same(found, policy.extend(rows, Sampling(8, 0.0), rng))
    windowed = load(folder("mistral"))
    with windowed.keeping():
        assert windowed._kept is None


def test_where_memory_runs_out_what_is_kept_makes_room(folder, monkeypatch):
    policy = load(folder("llama", max_position_embeddings=512))
    rows, sampled, failed = prompts(policy, LONG), Sampler.__call__, []
    wanted = talk(policy, rows, turns=3, temperature=1.0)

    def runs_out(sampler, ids, scores):
        if not failed and ids.shape[1] > 100:
            failed.append(len(sampler.rows))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sampled(sampler, ids, scores)

    monkeypatch.setattr(Sampler, "__call__", runs_out)
    with policy.keeping():
        same(talk(policy, rows, turns=3, temperature=1.0), wanted)
    assert failed == [6]


def test_a_call_keeps_as_many_rows_as_there_is_room_for(folder):
    policy = load(folder("llama", max_position_embeddings=512))
    rows, rng = prompts(policy, LONG), torch.Generator()
    wanted = talk(policy, rows, turns=3, temperature=1.0)
    with policy.keeping():
        # keys and values of two layers, each of two heads of eight numbers, in float32
        width = max(map(len, rows)) + 8
        policy._kept.most_bytes = 2 * 3 * width * 2 * 2 * 2 * 8 * 4
        policy.extend(rows, Sampling(8, 0.0), rng)
        (block,) = policy._kept._added
        assert len(block.texts) == 3
        assert policy._kept.room < block.bytes / 3
        same(talk(policy, rows, turns=3, temperature=1.0), wanted)


def test_kept_beginnings_and_rests_are_aligned_on_the_right():
    block = Block([np.arange(9)], [], 0, np.arange(9)[None])
    given = laid_out([np.arange(1, 7), np.arange(1, 5)], [Found(block, 0, 4), Found(block, 0, 1)])
    assert given.first == 4
    assert given.ids.tolist() == [[1, 2, 3, 4, 0, 5, 6], [0, 0, 0, 1, 2, 3, 4]]
    assert given.mask.tolist() == [[1, 1, 1, 1, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]]
    assert laid_out([np.arange(3), np.arange(1)]).mask.tolist() == [[1, 1, 1], [0, 0, 1]]
