"""Rewards that are weighed by how weak, risky and redundant they are."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.quark_medical_alignment import balanced, summands
from rewardlab.rewards.reward import reward


@reward
def a(trajectory):
    return trajectory.problem.meta["row"][0]


@reward
def b(trajectory):
    return trajectory.problem.meta["row"][1]


@reward
def c(trajectory):
    return trajectory.problem.meta["row"][2]


def weights(rows, risk: tuple[float, ...] = ()) -> list[float]:
    run, parts = Run(None), (a(), b(), c())[: len(rows[0])]
    group = [Trajectory(ask("?", None, row=row), (Turn("policy", np.zeros(1, np.int64)),), "end") for row in rows]
    scores = balanced(*parts, risk=risk)([group], run)[0]
    found = [run.metrics[f"weight/{part.label}"] for part in parts]
    for row, score in zip(rows, scores, strict=True):
        assert score.missing if None in row else score.value == pytest.approx(np.dot(found, row))
    return found


def test_weights_follow_the_distance_of_the_mean_from_the_best():
    # a: 1 - 3/4, b: 1 - 1/4; the correlation of (1 1 1 0) and (0 0 1 0): deviations 1/4 1/4 1/4 -3/4 and -1/4 -1/4 3/4 -1/4,
    # product 1/4, squares 3/4 and 3/4: 1/3, the same for both
    assert weights([(1, 0), (1, 0), (1, 1), (0, 0)]) == pytest.approx([0.5, 1.5])
    # what is earned throughout has no weight; where all are, nothing is weak
    assert weights([(1, 0), (1, 1)]) == [0, 2]
    assert weights([(1, 2), (1, 2)]) == [1, 1]


def test_rewards_that_say_the_same_weigh_as_much_as_one():
    # a and b are equal, and c is at right angles to them: raw weights 1/2 1/(1 + 1), the same, 1/2
    assert weights([(1, 1, 1), (1, 1, 0), (0, 0, 1), (0, 0, 0)]) == pytest.approx([0.75, 0.75, 1.5])
    # opposed ones keep all of theirs
    assert weights([(1, 0), (0, 1)]) == pytest.approx([1, 1])


def test_the_risk_multiplies_and_rows_without_a_verdict_do_not_count():
    assert weights([(1, 0), (0, 1), (None, 9)], risk=(3, 1)) == pytest.approx([1.5, 0.5])
    assert weights([(1, 0), (0, 1)], risk=(0, 1)) == pytest.approx([0, 2])
    assert weights([(None, 1)]) == [1, 1]
    with pytest.raises(RewardlabError, match="a number from 0 up for each of the 2 rewards"):
        weights([(1, 0), (0, 1)], risk=(1.0,))
    with pytest.raises(RewardlabError, match="one above 0"):
        weights([(1, 0), (0, 1)], risk=(0.0, 0.0))


def test_the_summands_of_a_sum_and_their_weights():
    found = summands(a() - 0.5 * (b() + 2 * c()) + 1 + 0 * b())
    assert [(weight, str(part)) for weight, part in found] == [(1.0, "a()"), (0.5, "-1 * b()"), (1.0, "-1 * c()")]
    assert [str(part) for _, part in summands(a() * b())] == ["a() * b()"]
    assert summands(-1 * (-1 * a()))[0][1] == -1 * (-1 * a())
