"""Votes of annotators, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.aurora_universal_prm import noisy_steps, voted_steps
from rewardlab.rewards.reward import reward

ROW = Trajectory(ask("?"), (Turn("policy", np.zeros(3, np.int64), text="abc"),), "end", steps=(0, 1, 2))


def says(*labels):
    @reward(steps=True)
    def said(trajectory):
        return [(at, x) for at, x in enumerate(labels) if x is not None]

    return said()


@reward(over="groups")
def silent(groups, run):
    return [[None for _ in group] for group in groups]


def verdict(value):
    @reward
    def known(trajectory):
        return value

    return Run(None, verify=known())


def voted(*of, run=None, **settings):
    ((score,),) = voted_steps(inner=of, **settings)([[ROW]], run or verdict(0.0))
    return None if score.missing else dict(score.steps)


def test_most_votes_count_and_half_is_no_label():
    judges = says(1.0, 0.0, 1.0), says(1.0, 0.4, 0.0), says(0.0, 1.0, None)
    assert voted(*judges) == {0: 1.0, 1: 0.0}
    assert voted(*judges, hard=False) == {0: pytest.approx(2 / 3), 1: pytest.approx(1 / 3), 2: 0.5}
    # who says nothing does not vote
    assert voted(says(1.0, 0.0, 0.0), silent()) == {0: 1.0, 1: 0.0, 2: 0.0}
    assert voted(silent()) is None


def test_who_finds_nothing_wrong_in_a_wrong_reply_has_no_vote():
    blind, sees = says(1.0, 1.0, 1.0), says(1.0, 0.0, 0.0)
    assert voted(blind, blind, sees) == {0: 1.0, 1: 1.0, 2: 1.0}
    assert voted(blind, blind, sees, reference=True) == {0: 1.0, 1: 0.0, 2: 0.0}
    assert voted(blind, blind, reference=True) is None
    # of a right reply, and of one without a verdict, all may speak
    for value in (1.0, None):
        assert voted(blind, blind, sees, reference=True, run=verdict(value)) == {0: 1.0, 1: 1.0, 2: 1.0}


def test_annotators_of_known_quality_err_by_themselves_and_always_alike():
    rows = [[Trajectory(ask(str(i)), ROW.turns, "end", steps=(0, 1, 2)) for i in range(400)]]
    run, truth = verdict(1.0), says(1.0, 0.0, 0.0)
    a, again, b = (
        np.array([[x for _, x in s.steps] for s in noisy_steps(inner=truth, miss=0.3, alarm=0.1, annotator=name)(rows, run)[0]])
        for name in "aab"
    )
    assert (a == again).all()
    assert a.mean(0) == pytest.approx([0.9, 0.3, 0.3], abs=0.06)
    # both overlook a step as often as two by chance
    assert (a * b)[:, 1].mean() == pytest.approx(0.09, abs=0.04)
    exact = noisy_steps(inner=truth, miss=0.0, alarm=0.0)(rows, run)[0][0]
    assert exact.steps == ((0, 1.0), (1, 0.0), (2, 0.0))


def test_it_needs_annotators():
    with pytest.raises(RewardlabError, match="annotators"):
        voted()
