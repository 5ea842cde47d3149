"""Vectors in place of token embeddings: the same in the lean policy and in transformers, to sample, score and learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab.core import Sampling, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.policies.assistant import Assistant
from rewardlab.policies.vectors import NO_TOKEN, numbered
from rewardlab.util.outputs import forward_batch

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


def vectors_turn(vectors) -> Turn:
    return Turn("writer", np.full(len(vectors), NO_TOKEN, np.int64), vectors=np.asarray(vectors, np.float32))


def prompts(policy, times=3) -> list[Trajectory]:
    asked = [ask(q) for q in QUESTIONS for _ in range(times)]
    return policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])


def extended(policy, write=None, seed=2) -> list[Trajectory]:
    rows, sampling, rng = prompts(policy), Sampling(max_new=6), torch.Generator().manual_seed(seed)
    if write is None:
        return policy.extend(rows, sampling, rng)
    with policy.prefixed(write):
        return policy.extend(rows, sampling, rng)


def as_tokens(policy, ids):
    """Puts tokens before rows: as such, and as the vectors that are their embeddings."""
    table = policy.token_embeddings().detach().numpy()
    tokens = lambda rows, rng: [replace(t, turns=(Turn(None, np.array(ids)), *t.turns)) for t in rows]  # noqa: E731
    vectors = lambda rows, rng: [replace(t, turns=(vectors_turn(table[ids]), *t.turns)) for t in rows]  # noqa: E731
    return tokens, vectors


@pytest.mark.parametrize("threads", [1, 2])
def test_embeddings_as_vectors_are_read_as_their_tokens(policies, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for policy in policies:
            tokens, vectors = as_tokens(policy, [7, 40])
            plain, soft = extended(policy, tokens), extended(policy, vectors)
            assert [t.reply for t in plain] == [t.reply for t in soft] != [t.reply for t in extended(policy)]
            for a, b in zip(plain, soft, strict=True):
                np.testing.assert_allclose(a.turns[-1].logprobs, b.turns[-1].logprobs, atol=1e-4)
            own = [policy.evaluate(forward_batch(rows, policy.device), ("logprobs",)).logprobs for rows in (plain, soft)]
            decided = forward_batch(plain, policy.device).mask
            torch.testing.assert_close(own[0][decided], own[1][decided], atol=1e-4, rtol=1e-4)
    finally:
        torch.set_num_threads(before)


def test_what_is_sampled_after_vectors_is_scored_alike_by_both(policies):
    found = []
    for policy in policies:
        hidden = policy.token_embeddings().shape[1]
        noise = torch.randn(6, 2, hidden, generator=torch.Generator().manual_seed(0)).numpy()
        write = lambda rows, rng, v=noise: [replace(t, turns=(vectors_turn(v[i]), *t.turns)) for i, t in enumerate(rows)]  # noqa: E731
        rows = extended(policy, write)
        scored = policy.score(rows)
        for t, own in zip(rows, scored, strict=True):
            # the vectors are no tokens; what the policy wrote is at the end
            assert not own[:2].any()
            np.testing.assert_allclose(own[t.mask_of("policy")], t.turns[-1].logprobs, atol=2e-3)
        # nothing of the row is lost when it is cut within its vectors
        assert rows[0].cut(1).turns[0].vectors.shape == (1, hidden)
        assert policy.pieces(rows[0].ids)[:2] == ["", ""]
        assert policy.activation_table(forward_batch(rows, policy.device), 1).shape[1] == max(map(len, rows))
        found.append([t.reply for t in rows])
    assert found[0] == found[1]


def test_an_empty_prefix_shifts_nothing(policies):
    for policy in policies:
        plain, empty = extended(policy), extended(policy, Assistant(policy, count=0, size=4).write)
        for a, b in zip(plain, empty, strict=True):
            assert len(a.turns) == len(b.turns)
            assert np.array_equal(a.ids, b.ids)
            assert np.array_equal(a.turns[-1].logprobs, b.turns[-1].logprobs)


def test_equal_vectors_have_one_number_and_places_must_fit():
    one, two = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    read = Turn(None, np.array([5, 6]))
    rows = [Trajectory(ask("?"), (vectors_turn([one, two]), read)), Trajectory(ask("?"), (vectors_turn([two, two]), read))]
    ids, vectors = numbered(rows, 10)
    assert [row.tolist() for row in ids] == [[10, 11, 5, 6], [11, 11, 5, 6]]
    assert vectors.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert rows[0].ids.tolist() == [NO_TOKEN, NO_TOKEN, 5, 6]
    with pytest.raises(RewardlabError, match="1 vectors for the 2 places"):
        numbered([Trajectory(ask("?"), (replace(rows[0].turns[0], vectors=one[None]),))], 10)


def test_what_cannot_read_vectors_says_so(policies):
    for policy in policies:
        narrow = lambda rows, rng: [replace(t, turns=(vectors_turn(np.ones((1, 3))), *t.turns)) for t in rows]  # noqa: E731
        with pytest.raises(RewardlabError, match="vectors of 3 numbers"):
            extended(policy, narrow)
        _, vectors = as_tokens(policy, [7])
        with policy.joined([(1.0, policy.copy("other"))]), pytest.raises(RewardlabError, match="cannot read"):
            extended(policy, vectors)


def test_rows_that_were_begun_get_no_second_prefix(policies):
    policy = policies[0]
    _, vectors = as_tokens(policy, [7])
    rows = extended(policy, vectors)
    with policy.prefixed(vectors):
        more = policy.extend([replace(t, stop=None) for t in rows], Sampling(max_new=2), torch.Generator().manual_seed(0))
    assert all(sum(turn.vectors is not None for turn in t.turns) == 1 for t in more)
