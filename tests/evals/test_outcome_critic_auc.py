"""Whether token scores fall where replies go wrong, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.oreal import outcome_critic_auc
from rewardlab.rewards.reward import reward

# each reply: the ids are ten times the value of the text up to there; one token of prompt, two steps of two tokens
ROWS = {"right": [2, 2, 2, 2, 9], "slips first": [0, 2, -8, -8, -99], "slips last": [1, 1, 1, -9, -99]}
STEPS = {"right": (1, 1), "slips first": (0, 0), "slips last": (1, 0)}


@rollout
def listed(problems, run, *, names: tuple[str, ...]):
    rows = []
    for name in names:
        ids = np.array(ROWS[name])
        turns = (Turn(None, ids[:1]), Turn("policy", ids[1:], text=name))
        rows.append(Trajectory(ask("?", None), turns, "end", steps=(2, 4)))
    return [rows]


@reward(steps=True)
def checked(trajectory):
    return [(at, float(ok)) for at, ok in zip(trajectory.steps, STEPS[trajectory.reply], strict=True)]


@reward
def verify(trajectory):
    return float(trajectory.reply == "right")


class Judge:
    name, device = "judge", torch.device("cpu")

    def evaluate(self, batch, wants=(), per_token=()):
        return Outputs(value=batch.ids.float())


def run_of() -> Run:
    return Run(policy=None, models={"judge": Judge()}, verify=verify())


def found(*names: str):
    return outcome_critic_auc(model="judge", steps=checked(), rollout=listed(names=names))([], run_of())


def test_by_hand():
    # before the third decision, in the mean over those so far:  right (2 + 2 + 2)/3,  slips first (0 + 2 - 8)/3,  slips last 1
    # after step one the second alone is wrong: it is below both others. The last step is no place to compare at
    # at the end: 2;  (0 + 2 - 8 - 8)/4;  (1 + 1 + 1 - 9)/4: the right one is above both
    assert found(*ROWS) == {"blame": 1.0, "outcome": 1.0, "n": 3.0}


def test_a_score_that_falls_with_every_token_finds_nothing():
    ROWS["slips first too"], STEPS["slips first too"] = ROWS["right"], (0, 1)
    # one of the two wrong ones has the scores of the right one
    assert found("right", "slips first", "slips first too")["blame"] == pytest.approx((1 + 0.5) / 2)


def test_without_a_place_at_which_replies_differ_it_is_refused():
    with pytest.raises(RewardlabError, match="goes wrong where another does not"):
        found("right", "slips last")


def test_replies_without_a_verdict_are_left_out():
    run = run_of()
    run.verify = unsure()
    with pytest.raises(RewardlabError, match="goes wrong"):
        outcome_critic_auc(model="judge", steps=checked(), rollout=listed(names=("right", "slips first")))([], run)


@reward
def unsure(trajectory):
    return Score(None, why="nobody knows")
