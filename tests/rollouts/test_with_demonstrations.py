"""Recorded replies beside sampled ones."""

from __future__ import annotations

import pytest

from rewardlab.core import Run, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.with_demonstrations import with_demonstrations

PROBLEMS = [ask("2+3?", "5", human="five", model="5"), ask("1+1?", "2", human="two", model="2")]


def test_recorded_replies_come_first_and_are_known_by_their_column():
    part = with_demonstrations(inner=independent(n=3), fields=("human", "model"))
    groups = part(PROBLEMS, Run(untrained(), max_new=4))
    assert [[t.tag for t in group] for group in groups] == [["human", "model", "", "", ""]] * 2
    assert [group[0].reply for group in groups] == ["five", "two"]
    assert all(t.problem is problem for group, problem in zip(groups, PROBLEMS, strict=True) for t in group)
    # what was sampled has log-probs, what was recorded none
    assert [t.turns[-1].logprobs is None for t in groups[0]] == [True, True, False, False, False]


@rollout
def only_the_second(problems, run):
    return independent(n=1)(problems[1:], run)


def test_a_problem_that_is_dropped_takes_its_recorded_replies_along():
    (group,) = with_demonstrations(inner=only_the_second(), fields=("human",))(PROBLEMS, Run(untrained(), max_new=4))
    assert [t.tag for t in group] == ["human", ""]
    assert group[0].reply == "two"
    assert {t.problem.question for t in group} == {"1+1?"}


def test_a_missing_column_is_said():
    with pytest.raises(RewardlabError, match="no text 'other'"):
        with_demonstrations(inner=independent(n=1), fields=("other",))(PROBLEMS, Run(untrained(), max_new=4))
