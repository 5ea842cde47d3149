"""Rows that are sampled and scored together: as many as there is memory for, and fewer where it runs out after all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import checkpoint

from rewardlab import RewardlabError
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.evals.pairs import end_values
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.policies import head
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.sampling import Sampler
from rewardlab.policies.llama import decode
from rewardlab.policies.room import fitting_rows, fitting_tokens, in_parts, in_passes
from rewardlab.util import device as devices
from rewardlab.util.outputs import entropies, forward_batch


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
    monkeypatch.setattr(
        policy, "_generate", lambda model, prompts, *rest: (calls.append(len(prompts)), generate(model, prompts, *rest))
    )
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
    monkeypatch.setattr(policy, "most_tokens", 7 * max(map(len, rows)))
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


@pytest.fixture(params=["lean", "hf"])
def either(request, policy):
    return untrained() if request.param == "lean" else policy


WANTS = ("logprobs", "entropy", "hidden")


def tables(policy, rows):
    found = policy.evaluate(forward_batch(rows, policy.device), WANTS).tensors()
    assert found.keys() == set(WANTS)
    return found


def passes_of(policy, monkeypatch):
    """The shapes of the passes that it makes from now on."""
    shapes, forward = [], policy._forward
    monkeypatch.setattr(policy, "_forward", lambda ids, *rest: (shapes.append(tuple(ids.shape)), forward(ids, *rest))[1])
    return shapes


def test_a_batch_without_gradient_takes_as_many_passes_as_memory_asks_for(either, monkeypatch):
    rows = either.write(asked(either, 7), ["4", "a longer reply", "5 + 5", "b", "9 and 9", "1", "2"])
    width = max(map(len, rows))
    with torch.no_grad():
        wanted = tables(either, rows)
    shapes, counted = passes_of(either, monkeypatch), either.token_count.scored
    monkeypatch.setattr(either, "tokens_at_once", lambda most: 3 * width + 1)
    with torch.no_grad():
        found = tables(either, rows)
    assert either.token_count.scored - counted == sum(map(len, rows))
    assert [n for n, _ in shapes] == [3, 3, 1]
    assert shapes[-1][1] == len(rows[-1]) < width
    for name, x in found.items():
        torch.testing.assert_close(x, wanted[name], atol=1e-5, rtol=1e-5)
    # a pass with gradient is whole: its micro-batches have been made for the memory that is there
    tables(either, rows)
    assert shapes[-1] == (7, width)


def test_a_batch_goes_on_where_memory_ran_out_and_remembers(either, monkeypatch, capsys):
    rows = asked(either, 7)
    with torch.no_grad():
        wanted, forward = tables(either, rows), either._forward

    def runs_out(ids, *rest):
        if len(ids) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(ids, *rest)

    monkeypatch.setattr(either, "_forward", runs_out)
    monkeypatch.setattr(either, "most_tokens", either.most_tokens)
    for _ in range(2):
        with torch.no_grad():
            for name, x in tables(either, rows).items():
                torch.testing.assert_close(x, wanted[name], atol=1e-5, rtol=1e-5)
    assert capsys.readouterr().err.count("continuing with 3") == 1


def test_values_at_the_ends_of_pairs_are_read_in_bounded_passes(monkeypatch):
    critic = untrained().copy("critic", value_head=True)
    with torch.no_grad():
        critic.model.value_head.normal_(generator=torch.Generator().manual_seed(0))
    rows = asked(critic, 7)
    wanted, shapes = end_values(critic, rows), passes_of(critic, monkeypatch)
    monkeypatch.setattr(critic, "tokens_at_once", lambda most: 3 * max(map(len, rows)))
    np.testing.assert_allclose(end_values(critic, rows), wanted, atol=1e-5)
    assert [n for n, _ in shapes] == [3, 3, 1]


def test_passes_of_scorers_are_bounded_and_halved(monkeypatch, capsys):
    done, lengths = [], [4, 4, 4, 4, 4, 4, 4]
    monkeypatch.setattr("rewardlab.policies.room.free_memory", lambda device: 20_000)
    here = torch.device("cpu")
    assert in_passes(lengths, 16384, lambda tokens: 3 * tokens, here, done.append) == 16384
    assert done == [[0, 1, 2, 3, 4, 5, 6]]

    def runs_out(part):
        if len(part) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        done.append(part)

    done.clear()
    assert in_passes(lengths, 28, lambda tokens: tokens, here, runs_out) == 14
    assert sorted(i for part in done for i in part) == list(range(7))
    assert capsys.readouterr().err.count("continuing with 3") == 1


class Head:
    """A vocabulary head on a GPU, as far as chunks ask for it."""

    device = torch.device("cuda", 0)

    def __len__(self):
        return 152_000


def test_on_a_gpu_chunks_of_the_head_grow_with_free_memory(monkeypatch):
    sizes = []
    for free in (80 << 30, 4 << 30, 1 << 28):
        monkeypatch.setattr(head, "free_memory", lambda device, free=free: free)
        sizes.append(head.chunks_of(4096, Head())[0].stop)
    assert sizes == [(1 << k) // 152_000 for k in (27, 26, 23)]


def test_the_lean_policy_has_fewer_slots_where_memory_is_short(monkeypatch):
    lean, slots = untrained(), []
    wanted = drawn(lean)
    decoder = decode.Decoder
    monkeypatch.setattr(decode, "Decoder", lambda steps, n, *rest: (slots.append(n), decoder(steps, n, *rest))[1])
    longest = max(map(len, asked(lean, 7)))
    monkeypatch.setattr(lean, "free_memory", lambda: 3 * sum(lean.sampling_bytes(1, longest, 12).values()))
    same(drawn(lean), wanted)
    # of three, two by the share of free memory that is planned with
    assert slots == [2]


@pytest.mark.parametrize("enough", [None, 5])
def test_the_lean_policy_goes_on_where_memory_ran_out_and_remembers(enough, monkeypatch, capsys):
    lean = untrained()
    monkeypatch.setattr(lean, "ends", frozenset(range(0, 300, 10)))
    wanted, step = drawn(lean), decode.Decoder._step
    assert {stop for _, stop in wanted[0]} == {"end", "length"}

    def runs_out(decoder):
        # in the middle of replies, of which some have ended
        if len(decoder.slots) > 4 and decoder.finished >= 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(decoder)

    monkeypatch.setattr(decode.Decoder, "_step", runs_out)
    found = drawn(lean, enough=enough)
    if enough is None:
        same(found, wanted)
    else:
        assert sum(stop is not None for _, stop in found[0]) >= enough
        assert all(ids == row[: len(ids)] for (ids, _), (row, _) in zip(found[0], wanted[0], strict=True))
    assert lean.most_rows == 3
    drawn(lean)
    assert capsys.readouterr().err.count("continuing with 3") == 1
