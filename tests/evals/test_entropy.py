"""Whether it can be told beforehand which decisions an update makes surer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, credit, rollout
from rewardlab.credit.entropy import entropy_change
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.steer_entropy_change import check, covariance, entropy_change_foretold
from rewardlab.rewards.reward import reward

# of each row's two decisions: probabilities of three tokens, of which the first was sampled
ROWS = [[[0.8, 0.1, 0.1], [0.1, 0.6, 0.3]], [[0.7, 0.2, 0.1], [0.2, 0.4, 0.4]]]


class Table:
    """Logits of its own for every decision: an update changes the entropy at each by its own token alone."""

    device = torch.device("cpu")

    def __init__(self):
        self.logits = torch.nn.Parameter(torch.tensor(ROWS).log())

    def parameters(self):
        return [self.logits]

    def state(self):
        return {"logits": self.logits.detach()}

    def load_state(self, state):
        with torch.no_grad():
            self.logits.copy_(state["logits"])

    def evaluate(self, batch, wants=("logprobs",)):
        said = self.logits.log_softmax(2)
        pad = torch.zeros(2, 1)
        return Outputs(logprobs=torch.cat([pad, said[..., 0]], 1), entropy=torch.cat([pad, -(said.exp() * said).sum(2)], 1))


@rollout
def listed(problems, run):
    ids, start = np.zeros(2, np.int64), Turn(None, np.zeros(1, np.int64))
    return [[Trajectory(p, (start, Turn("policy", ids, text=text)), "end") for text in p.meta["replies"]] for p in problems]


@reward
def written(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply)


@credit
def backwards(a, batch, run):
    return -entropy_change()(a, batch, run)


def found(*replies, length=0.01, policy=None):
    measure = entropy_change_foretold(
        reward=written(), credit=center() >> to_go(), predictors={"omega": entropy_change(), "wrong": backwards()},
        rollout=listed(), length=length,
    )  # fmt: skip
    return measure([ask("?", replies=[*replies])], Run(policy=policy or Table()))


def test_likely_tokens_of_right_replies_and_unlikely_ones_of_wrong_replies_become_surer():
    numbers = found("1", "0")
    assert (numbers["auc.omega"], numbers["auc.wrong"], numbers["fell"], numbers["n"]) == (1.0, 0.0, 0.5, 1.0)


def test_the_change_is_that_of_the_softmax():
    # dH = -A eta [p_a (log p_a + H) - sum_i p_i^2 (log p_i + H)], A = 1/2 and -1/2, eta = length over the gradient's norm
    p, a = torch.tensor(ROWS), torch.tensor([[0.5], [-0.5]])
    surprise = p.log() - (p * p.log()).sum(2, keepdim=True)
    slope = -a * (p[..., 0] * surprise[..., 0] - (p.square() * surprise).sum(2))
    direction = a[..., None] * (torch.tensor([1.0, 0, 0]) - p)
    expected = float((slope * 0.001 / direction.norm()).mean())
    assert found("1", "0", length=0.001)["change"] == pytest.approx(expected, rel=0.02)


def test_the_policy_is_put_back():
    policy = Table()
    before = policy.logits.detach().clone()
    found("1", "0", length=0.5, policy=policy)
    assert torch.equal(policy.logits, before)


@pytest.mark.parametrize("replies", [("1", "1"), ("1", "?")])
def test_groups_that_teach_nothing_are_refused(replies):
    with pytest.raises(RewardlabError, match="no group of 1 problems has rewards that differ"):
        found(*replies)


def test_the_claim_sets_the_methods_estimate_against_the_covariance():
    assert check.by.settings["predictors"] == {"omega": entropy_change(), "covariance": covariance()}
