"""Of what is paid the share that is right, and of what is right the share that is paid."""

from __future__ import annotations

import math

import pytest
from rows import Replies

from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.intrinsic.co_reward import paid_right
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent


@reward
def true(trajectory):
    return None if trajectory.reply == "unknown" else float("right" in trajectory.reply)


@reward
def one(trajectory):
    return None if "unread" in trajectory.reply else float("1" in trajectory.reply)


@reward
def two(trajectory):
    return 2.0 * ("2" in trajectory.reply)


def measured(*replies: str):
    part = paid_right(reward=one() + two(), truth=true(), rollout=independent(n=len(replies)))
    return part([ask("Q")], Run(Replies(replies)))


def test_precision_and_recall_by_term():
    found = measured("right 1", "right 1", "wrong 1", "right", "wrong", "right 2 unread", "unknown")
    # six have a verdict, four of them are right; one pays three, two of them right; two pays one, which is right
    assert found["right"] == pytest.approx(4 / 6)
    assert (found["precision.one"], found["recall.one"], found["paid.one"]) == pytest.approx((2 / 3, 2 / 4, 3 / 6))
    assert (found["precision.two"], found["recall.two"], found["paid.two"]) == pytest.approx((1.0, 1 / 4, 1 / 6))
    assert found["n"] == 6


def test_what_is_never_paid_and_what_is_never_right():
    found = measured("wrong 1", "wrong")
    assert found["precision.one"] == 0
    assert math.isnan(found["recall.one"])
    assert math.isnan(found["precision.two"])
    with pytest.raises(RewardlabError, match="no verdict"):
        measured("unknown")
