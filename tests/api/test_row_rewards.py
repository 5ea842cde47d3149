"""What a reward says of the answers that stand in the data."""

import pytest

from rewardlab.api import own_answers
from rewardlab.core import Message, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.reward_model import load_reward_model
from rewardlab.rewards.reward import reward
from tests.helpers.checkpoints import checkpoint

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


def test_a_column_of_replies_that_no_row_has_is_a_wrong_name():
    judge = own_answers(length(), "reply")
    with pytest.raises(RewardlabError, match="no row to judge has a column reply of replies; the columns are: prompt, answer"):
        judge(ROWS)
    # where some have it, the others have no reply; and no rows have no wrong name
    assert [drop and drop.reason for drop in judge([{**ROWS[0], "reply": "five"}, ROWS[2]])] == [None, "no reply"]
    assert judge([]) == []
    # the usual name of the answers may be missing
    assert [drop and drop.reason for drop in own_answers(length())([{"prompt": "2+3"}])] == ["no reply"]


def test_a_reward_that_asks_the_model_says_that_there_is_none():
    with pytest.raises(RewardlabError, match="this reward asks the model, and here there is none"):
        own_answers(asks())(ROWS)


def test_a_trained_reward_model_judges_the_rows_replies(tmp_path):
    """It reads text and needs no policy; it is shown the prompt and the reply of the row, as wherever it is asked."""
    checkpoint(tmp_path / "rm", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    name = f"model:{tmp_path / 'rm'}"
    replies = ["3", "4", "I think that it is 5"]
    rows = [{"prompt": "1 + 2", "answer": "3", "reply": reply} for reply in replies]
    scores = load_reward_model(name).score([([Message("user", "1 + 2")], reply) for reply in replies])
    assert len(set(scores)) == 3
    bar = sorted(scores)[1]
    fates = own_answers(name, "reply", f"{bar - 1e-4:f}:")(rows)
    assert [drop is None for drop in fates] == [score >= bar for score in scores]
