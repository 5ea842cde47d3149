"""Rows that are sampled and scored together: as many as there is memory for, and fewer where it runs out after all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import checkpoint

from rewardlab import RewardlabError
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.sampling import Sampler
from rewardlab.policies.llama import decode
from rewardlab.policies.room import fitting_rows, fitting_tokens, in_parts
from rewardlab.util import device as devices
from rewardlab.util.outputs import entropies


def test_parts_are_as_large_as_memory_allows():
    lengths = [1, 1, 2, 4, 8, 8, 20]
    parts = fitting_rows(lengths, 4, lambda rows, length: 10 * rows * length, free=200)
    # of 160 bytes: four rows of at most 4; one of 8 beside another; and one that is too large whatever else
    assert parts == [[0, 1, 2, 3], [4, 5], [6]]
    assert fitting_rows([3] * 5, 2, lambda rows, length: 0, free=0) == [[0, 1], [2, 3], [4]]
    assert fitting_tokens(16384, lambda tokens: 3 * tokens, free=8192) == 2048
    assert fitting_tokens(16384, lambda tokens: 3 * tokens, free=0) == 512


def test_where_memory_runs_out_rows_are_halved_and_it_is_said_once(capsys):
    done, again = [], []

    def work(part):
        if len(part) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        done.append(part)

    assert in_parts([[0, 1, 2, 3, 4], [5, 6, 7]], work, again.append) == 2
    assert done == [[0, 1], [2, 3], [4], [5, 6], [7]]
    assert again == [[0, 1, 2, 3, 4]]
    assert capsys.readouterr().err.count("out of memory with 5 rows at a time: continuing with 2") == 1
    assert in_parts([[0, 1]], work) is None


def test_what_no_division_helps_is_an_error():
    def fails(problem):
        def work(part):
            raise problem

        return work

    with pytest.raises(RewardlabError, match="out of memory with a single row"):
        in_parts([[0, 1]], fails(torch.OutOfMemoryError("CUDA out of memory")))
    with pytest.raises(RuntimeError, match="shape"):
        in_parts([[0, 1]], fails(RuntimeError("shape")))
    # other processes wait in the pass that failed
    with pytest.raises(torch.OutOfMemoryError):
        in_parts([[0, 1]], fails(torch.OutOfMemoryError("CUDA out of memory")), alone=False)


def test_free_memory(monkeypatch):
    here = torch.device("cpu")
    assert 0 < devices.free_memory(here) <= devices.memory_of(here)
    for name, value in (("mem_get_info", (100, 999)), ("memory_reserved", 70), ("memory_allocated", 30)):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert devices.free_memory(torch.device("cuda", 0)) == 140


def asked(policy, n):
    problems = [ask(f"{i} + {'1' * (i % 3)}{i} = ?") for i in range(n)]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def drawn(policy, n=7, **sampling):
    rows = policy.extend(asked(policy, n), Sampling(12, **sampling), torch.Generator().manual_seed(3))
    return [(t.turns[-1].ids.tolist(), t.stop) for t in rows], [t.turns[-1].logprobs for t in rows]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("room")
    checkpoint(folder, tokenizer())
    policy = HFPolicy.load(folder, "cpu", "float32")
    policy.ends = frozenset(range(0, 300, 40))
    return policy


def same(found, wanted):
    assert found[0] == wanted[0]
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "top_p": 0.9}, {"seeds": tuple(range(7))}])
def test_a_row_samples_the_same_however_rows_are_divided(sampling, policy, monkeypatch):
    wanted, calls = drawn(policy, **sampling), []
    generate = policy._generate
    monkeypatch.setattr(policy, "_generate", lambda model, prompts, s: (calls.append(len(prompts)), generate(model, prompts, s)))
    longest = max(map(len, asked(policy, 7)))
    monkeypatch.setattr(policy, "free_memory", lambda: 3 * sum(policy.sampling_bytes(1, longest, 12).values()))
    same(drawn(policy, **sampling), wanted)
    assert calls[0] <= 3
    assert sum(calls) == 7
    assert {stop for _, stop in wanted[0]} == {"end", "length"}


def test_sampling_goes_on_where_memory_ran_out_and_remembers(policy, monkeypatch, capsys):
    wanted, sampled = drawn(policy), Sampler.__call__

    def runs_out(sampler, ids, scores):
        if len(sampler.rows) > 3 and sampler.replies.count[sampler.rows].max() == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sampled(sampler, ids, scores)

    monkeypatch.setattr(Sampler, "__call__", runs_out)
    monkeypatch.setattr(policy, "most_rows", policy.most_rows)
    before = policy.token_count.generated
    same(drawn(policy), wanted)
    assert policy.token_count.generated - before == sum(len(ids) for ids, _ in wanted[0])
    same(drawn(policy), wanted)
    assert capsys.readouterr().err.count("continuing with 3") == 1


def test_scoring_goes_on_where_memory_ran_out_and_remembers(policy, monkeypatch, capsys):
    rows = asked(policy, 7)
    wanted, forward = policy.score(rows), policy._forward

    def runs_out(ids, *rest):
        if ids.numel() > 3 * ids.shape[1]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(ids, *rest)

    monkeypatch.setattr(policy, "_forward", runs_out)
    monkeypatch.setattr(policy, "score_tokens", 7 * max(map(len, rows)))
    for _ in range(2):
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(policy.score(rows), wanted, strict=True))
    assert capsys.readouterr().err.count("continuing with 3") == 1


def test_outputs_of_rows_come_in_as_many_passes_as_memory_asks_for(policy, monkeypatch):
    rows, passes = asked(policy, 7), []
    wanted, evaluate = entropies(policy, rows), policy.evaluate
    monkeypatch.setattr(policy, "evaluate", lambda batch, wants: (passes.append(len(batch)), evaluate(batch, wants))[1])
    monkeypatch.setattr(policy, "tokens_at_once", lambda most: 3 * max(map(len, rows)) + 1)
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(entropies(policy, rows), wanted, strict=True))
    assert passes == [3, 3, 1]


def test_the_lean_policy_has_fewer_slots_where_memory_is_short(monkeypatch):
    lean, slots = untrained(), []
    wanted = drawn(lean)
    decoder = decode._Decoder
    monkeypatch.setattr(decode, "_Decoder", lambda steps, n, *rest: (slots.append(n), decoder(steps, n, *rest))[1])
    longest = max(map(len, asked(lean, 7)))
    monkeypatch.setattr(lean, "free_memory", lambda: 3 * sum(lean.sampling_bytes(1, longest, 12).values()))
    same(drawn(lean), wanted)
    # of three, two by the share of free memory that is planned with
    assert slots == [2]
