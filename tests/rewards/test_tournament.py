"""A double elimination: who meets whom, the places by hand, and what it pays replies that a judge compares."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.rewards.tournament import double_elimination, places

FORM = "{prompt}|{first}|{second}"


class Drawn(random.Random):
    """Players start in their order, and of two that tie the second one wins."""

    def sample(self, population, k, *, counts=None):
        return list(population)[:k]

    def random(self):
        return 0.0


def played(count, wins):
    """The places of a tournament whose matches `wins(a, b)` decides, and its matches, round by round."""
    tournament, share, rounds = places(count, Drawn()), None, []
    while True:
        try:
            matches = tournament.send(share)
        except StopIteration as over:
            return over.value, rounds
        rounds.append(matches)
        share = [wins(a, b) for a, b in matches]


def test_places_of_four_by_hand():
    """The higher number wins. 0 and 2 fall to the lower bracket, where 0 loses; 3 beats 1, which loses to 2; 3 beats 2 at last."""
    found, rounds = played(4, lambda a, b: float(a > b))
    assert found == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert rounds == [[(0, 1), (2, 3)], [(0, 2)], [(1, 3)], [(2, 1)], [(3, 2)]]


def test_one_defeat_is_forgiven_and_the_last_match_is_played_again():
    """3 beats 1 at first, 1 comes back through the lower bracket and beats 3: both have one defeat, and meet once more."""
    results = {(1, 3): [0.0], (3, 1): [0.0, 1.0]}

    def wins(a, b):
        return results[a, b].pop(0) if (a, b) in results else float(a == 1 or (b != 1 and a > b))

    found, rounds = played(4, wins)
    assert rounds[-2:] == [[(3, 1)], [(3, 1)]]
    assert found == pytest.approx([0, 2 / 3, 1 / 3, 1])


def test_who_has_no_opponent_goes_on_as_the_last():
    """Of 3, 2 has no opponent; 0 falls alone to the lower bracket."""
    found, rounds = played(3, lambda a, b: float(a > b))
    assert rounds == [[(0, 1)], [(1, 2)], [(0, 1)], [(2, 1)]]
    assert found == [0.0, 0.5, 1.0]


def test_of_those_who_are_out_in_one_round_whoever_won_more_comes_further():
    """0 and 6 are out in one round. By shares of votes 0 has won 0 and .4 of its matches, 6 none of two: 6 is placed below."""

    def wins(a, b):
        return 0.4 if (a, b) == (0, 2) else float(a > b)

    found, _ = played(8, lambda a, b: wins(a, b) if (a, b) != (4, 6) else 1.0)
    assert found[6] == 0.0
    assert found[0] == pytest.approx(1 / 7)
    assert sorted(found) == pytest.approx([i / 7 for i in range(8)])


def test_a_tie_is_decided_by_lot_and_counts_half():
    assert played(2, lambda a, b: 0.5)[0] == [0.5, 0.5]
    assert played(2, lambda a, b: 1.0)[0] == [1.0, 0.0]
    assert played(1, lambda a, b: 1.0) == ([0.5], [])
    # by lot the second one wins each match: 1 beats 0, loses to 2, beats 0 again, and then 2 twice
    assert played(3, lambda a, b: 0.5)[0] == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("count", [3, 5, 8, 13])
def test_the_best_wins_and_nobody_is_out_before_a_second_defeat(count):
    for seed in range(5):
        strength = random.Random(seed).sample(range(count), count)
        found, rounds = played(count, lambda a, b, strength=strength: float(strength[a] > strength[b]))
        assert found.index(1.0) == strength.index(count - 1)
        # every other loses twice: 2 n - 2 matches
        assert sum(map(len, rounds)) == 2 * count - 2


# ---- as a reward ---------------------------------------------------------------------------------------------------------


class Judge:
    """It prefers the larger number, or says nothing about what is no number; it notes what it is asked at once."""

    context = 10_000

    def __init__(self):
        self.calls = []

    def read(self, trajectories, messages):
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        pairs = [t.problem.question.split("|")[1:] for t in trajectories]
        self.calls.append(pairs)
        ids = np.zeros(1, np.int64)
        return [t.plus(Turn("judge", ids, text=self._said(*pair)), "end") for t, pair in zip(trajectories, pairs, strict=True)]

    def _said(self, a, b):
        return f"[[{'AB'[int(a) < int(b)]}]]" if a.isdigit() and b.isdigit() else "Hm."


def group(question, *replies):
    return [Trajectory(ask(question), (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in replies]


def paid(*groups, **settings):
    judge = Judge()
    run = Run(policy=None, models={"judge": judge})
    scores = double_elimination(model="judge", form=FORM, **settings)(list(groups), run)
    return [[s.value for s in row] for row in scores], judge, run


def test_replies_earn_their_places_and_groups_are_judged_side_by_side():
    found, judge, run = paid(group("Large?", "3", "1", "2", "4"), group("Larger?", "<think>9</think>5", "7"))
    assert found[0][3] == 1.0
    assert found[0][1] in (0.0, pytest.approx(1 / 3))
    assert found[1] == [0.0, 1.0]
    # two matches of the first group and that of the second at once
    assert len(judge.calls[0]) == 3
    assert run.metrics["judge_no_verdict"] == 0.0


def test_no_verdict_where_nothing_can_be_read_and_a_tie_where_something_can():
    found, _, run = paid(group("Large?", "a", "b", "c"), group("Larger?", "1", "2", "x"))
    assert found[0] == [None] * 3
    assert sorted(found[1]) == [0.0, 0.5, 1.0]
    assert 0.5 < run.metrics["judge_no_verdict"] < 1.0


def test_the_same_text_earns_the_same_and_nobody_is_asked_about_it():
    found, judge, _ = paid(group("Large?", "2", "2", "2"), group("Larger?", "5", "2", "5"))
    assert found[0] == [0.5] * 3
    assert found[1][0] == found[1][2] == 0.75
    assert found[1][1] == 0.0
    assert ["5", "5"] not in [pair for call in judge.calls for pair in call]
