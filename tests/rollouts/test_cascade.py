"""Rejection sampling of segments: which are kept, which is sampled again, and what a row of it looks like."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab.core import Run, Score, Turn, ask
from rewardlab.errors import NotFinite
from rewardlab.methods.search.cards import bar, cascade, chance
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.util.outputs import entropies

PROBLEMS = [ask("1 + 2 = ?"), ask("what is 12 * 3, and then 7 more?")]


class Told:
    """A policy whose segments are of two tokens, and whose texts are told; it remembers what it was asked to go on from."""

    context, name = 100, "policy"

    def __init__(self, texts, ends_at=2):
        self.texts, self.asked, self.ends_at = list(texts), [], ends_at

    def read(self, rows, messages):
        return [t.plus(Turn(None, np.zeros(3, np.int64), text="?")) for t in rows]

    def extend(self, rows, sampling, rng):
        self.asked += [t.reply for t in rows]
        return [self._next(t) for t in rows]

    def _next(self, t):
        ids = np.ones(2, np.int64)
        return t.plus(Turn("policy", ids, text=self.texts.pop(0)), "end" if len(t.turns) == self.ends_at else "entropy")


@reward
def told(trajectory):
    """What the newest segment's text says: a number, or nothing."""
    said = trajectory.turns[-1].text
    return Score(None) if said == "none" else 0.0 if said == "?" else float(said)


def sampled(policy, problems=1, max_new=10, **settings):
    run = Run(policy, max_new=max_new)
    return cascade(score=told(), target=1.0, beta=1e-3, **settings)([PROBLEMS[0]] * problems, run)


def test_the_bar_rises_with_the_tokens_and_the_chance_falls_below_it():
    # r(prompt) = 0, alpha = 1/2, r* = 1: from 1/2 at 0 tokens to 1 at 10
    assert [bar(0.5, 1.0, tokens, 10) for tokens in (0, 4, 10, 20)] == pytest.approx([0.5, 0.7, 1.0, 1.0])
    # a prompt that is worth more than r* starts at r*
    assert bar(3.0, 1.0, 0, 10) == 1.0
    assert chance(2.0, 1.0, 0.5) == 1.0
    assert chance(0.5, 1.0, 0.5) == pytest.approx(math.exp(-1))
    assert chance(-math.inf, 1.0, 0.5) == 0.0


def test_a_rejected_segment_alone_is_sampled_again():
    # bars 0.6 at 2 tokens and 0.7 at 4: 0.55 is rejected, 0.65 accepted; then 0.65 rejected and 0.75 accepted
    policy = Told(["0.55", "0.65", "0.65", "0.75"])
    ((row,),) = sampled(policy)
    assert policy.asked == ["", "", "0.65", "0.65"]
    assert row.reply == "0.650.75"
    # one turn for each segment, by the number of its candidate
    assert row.path == (1, 1)
    assert [end - start for _, start, end in row.spans] == [2, 2]
    assert row.stop == "end"


def test_after_enough_rejections_the_best_candidate_is_kept():
    policy = Told(["0.1", "0.3", "none", "0.2", "0.9"])
    ((row,),) = sampled(policy, attempts=3)
    assert row.reply == "0.30.9"
    assert row.path == (1, 0)


def test_without_any_score_the_first_candidate_is_kept():
    ((row,),) = sampled(Told(["none", "none", "1"]), attempts=1)
    assert row.turns[1].text == "none"


def test_a_score_that_is_no_number_is_an_error_and_accepts_nothing():
    with pytest.raises(NotFinite, match="is not finite"):
        sampled(Told(["nan", "1"]))


def test_replies_end_where_their_room_ends_and_share_no_segment():
    policy = Told(["1"] * 100, ends_at=99)
    groups = sampled(policy, problems=2, n=3, max_new=6)
    rows = [t for group in groups for t in group]
    assert [len(group) for group in groups] == [3, 3]
    assert all(t.stop == "length" and t.mask.sum() == 6 for t in rows)
    assert len({t.path[0] for t in groups[0]}) == 3


def test_segments_end_at_uncertain_tokens():
    policy, noise = untrained(layers=2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for w in policy.parameters():
            w += 0.3 * torch.randn(w.shape, generator=noise)

    @reward
    def anything(trajectory):
        return 1.0

    def rows():
        rollout = cascade(score=anything(), n=4, max_entropy=1.5, min_tokens=2, max_tokens=8)
        return [t for group in rollout(PROBLEMS, Run(policy, max_new=24)) for t in group]

    first = rows()
    assert any(len(t.turns) > 3 for t in first)
    for t, e in zip(first, entropies(policy, first), strict=True):
        for turn, (_, start, end) in zip(t.turns[1:], t.spans, strict=True):
            assert len(turn.ids) <= 8
            # nothing uncertain inside, from the third token on; and what follows a short segment is
            assert (e[start + 2 : end] <= 1.5 + 1e-4).all()
            if end < len(t) and len(turn.ids) < 8:
                assert e[end] > 1.5 - 1e-4
    assert [t.reply for t in rows()] == [t.reply for t in first]
