"""What a reward says of the answers that stand in the data."""

import pytest

from rewardlab.api import own_answers
from rewardlab.core import Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward

ROWS = [{"prompt": "2+3", "answer": "5"}, {"prompt": "", "answer": "6"}, {"prompt": "2+5", "answer": 7}]


@reward
def length(trajectory: Trajectory) -> float:
    return float(len(trajectory.reply))


@reward
def asks(trajectory: Trajectory, run) -> float:
    return float(len(run.policy.decode(trajectory.ids)))


def test_rows_stay_whose_reward_is_within_the_bounds():
    fates = own_answers(length(), "prompt", "4:")([*ROWS, {"prompt": "2 + 6", "answer": "8"}])
    assert [drop and drop.reason for drop in fates] == ["reward", "no problem", "reward", None]
    # correct() is the verifier's verdict, and a formula is read as on the command line
    assert [drop and drop.reason for drop in own_answers("correct() + 0.1")(ROWS)] == [None, "no problem", None]


def test_a_reward_that_asks_the_model_says_that_there_is_none():
    with pytest.raises(RewardlabError, match="this reward asks the model, and here there is none"):
        own_answers(asks())(ROWS)
