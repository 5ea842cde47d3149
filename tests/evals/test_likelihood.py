"""Whether it can be told beforehand what an update does to the right replies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, credit, rollout
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.methods.credit.token_hidden_reward import likelihood_foretold
from rewardlab.rewards.reward import reward


class Shared:
    """log p of the first two decisions of every row is one weight, of the third ones minus that, of the fourth another weight."""

    device = torch.device("cpu")

    def __init__(self):
        self.weights = torch.nn.Parameter(torch.tensor([-1.0, -2.0]))

    def parameters(self):
        return [self.weights]

    def state(self):
        return {"weights": self.weights.detach()}

    def load_state(self, state):
        with torch.no_grad():
            self.weights.copy_(state["weights"])

    def evaluate(self, batch, wants=("logprobs",)):
        own, other = self.weights
        row = torch.stack([torch.zeros(()), own, own, -own, other])
        table = row.expand(len(batch), 5)[:, : batch.width]
        return Outputs(logprobs=table, entropy=table.detach(), hidden=table.detach()[:, :, None])


@rollout
def listed(problems, run):
    start = Turn(None, np.zeros(1, np.int64))
    return [
        [
            Trajectory(p, (start, Turn("policy", np.zeros(n, np.int64), text=text)), "end")
            for text, n in zip(p.meta["replies"], p.meta["lengths"], strict=True)
        ]
        for p in problems
    ]


@reward
def written(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply)


@credit
def place(a, batch, run):
    """Later decisions have higher numbers."""
    return torch.arange(batch.width).expand(a.shape).float()


@credit
def backwards(a, batch, run):
    return -place()(a, batch, run)


def found(replies, lengths, policy=None):
    predictors = {"place": place(), "backwards": backwards()}
    measure = likelihood_foretold(reward=written(), credit=center() >> to_go(), predictors=predictors, rollout=listed())
    return measure([ask("?", replies=replies, lengths=lengths)], Run(policy=policy or Shared()))


def test_what_wrong_replies_share_with_right_ones_takes_these_down():
    # the right reply is one decision of the first weight; of the wrong one, two lower it, one raises it, one does neither
    numbers = found(["1", "0"], [1, 4])
    assert numbers["lowers"] == pytest.approx(2 / 3)
    assert (numbers["auc.place"], numbers["auc.backwards"], numbers["n"]) == (1.0, 0.0, 1.0)


def test_the_policy_is_put_back():
    policy = Shared()
    found(["1", "0"], [1, 4], policy)
    assert policy.weights.tolist() == [-1.0, -2.0]


@pytest.mark.parametrize(("replies", "lengths"), [("11", [1, 4]), ("1?", [1, 4]), ("10", [1, 2])])
def test_groups_that_show_nothing_are_refused(replies, lengths):
    with pytest.raises(RewardlabError, match="in no group of 1 problems"):
        found([*replies], lengths)
