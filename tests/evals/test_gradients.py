"""How much gradient estimates vary under several baselines, on a policy whose gradients are written down."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, rollout
from rewardlab.credit.group import center, subtract_mean_over_tokens
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import gradient_variance
from rewardlab.rewards.reward import reward


class Linear:
    """log pi of a reply is one weight times its length: the gradient g of a reply of l tokens is l."""

    device = torch.device("cpu")

    def __init__(self):
        self.weight, self.unused, self.frozen = (torch.nn.Parameter(torch.tensor([2.0])) for _ in range(3))
        self.frozen.requires_grad_(False)

    def parameters(self):
        return [self.weight, self.unused, self.frozen]

    def evaluate(self, batch, wants=("logprobs",)):
        return Outputs(logprobs=self.weight * torch.ones(batch.mask.shape))


@rollout
def listed(problems, run):
    """Replies of the lengths that stand in the problem; what each is paid is its text."""
    return [[_reply(p, n, r) for n, r in p.meta["replies"]] for p in problems]


def _reply(problem, n: int, paid: str) -> Trajectory:
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(n, np.int64), text=paid))
    return Trajectory(problem, turns, "end")


@reward
def written(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply)


CREDITS = {"mean": center() >> to_go(), "length": to_go() >> subtract_mean_over_tokens()}


def measured(*groups, size=2):
    measure = gradient_variance(reward=written(), credits=CREDITS, rollout=listed(), size=size)
    return measure([ask("?", replies=[*group]) for group in groups], Run(policy=Linear()))


def test_the_variances_by_hand():
    # groups (1 token, 1), (3 tokens, 0)   and   (1 token, 0), (3 tokens, 1);   without a verdict: not there
    # none: e = 1/2, 3/2: variance 1/2
    # mean, b 1/2: e = (1/2 - 3/2)/2 = -1/2, (-1/2 + 3/2)/2 = 1/2: variance 1/2
    # length, b 1/4 and 3/4: e = (3/4 - 3/4)/2 = 0, (-3/4 + 3/4)/2 = 0: variance 0
    # norm 1 and 9, b 1/10 and 9/10: e = (9/10 - 3/10)/2 = .3, (-9/10 + 3/10)/2 = -.3: variance .18
    found = measured([(1, "1"), (2, "?"), (3, "0"), (1, "0"), (3, "1"), (7, "1")])
    assert found["variance.mean"] == pytest.approx(1.0)
    assert found["variance.length"] == pytest.approx(0.0, abs=1e-9)
    assert found["variance.norm"] == pytest.approx(0.36)
    assert (found["variance.none"], found["norm_to_length"], found["n"]) == (1.0, pytest.approx(1.0), 1.0)


def test_variances_are_summed_over_problems_before_the_ratio():
    # the second: rewards equal, lengths 1 1 | 2 2: none e = 1, 2: 1/2, and every baseline leaves 0;  the third has one group
    found = measured([(1, "1"), (3, "0"), (1, "0"), (3, "1")], [(1, "1"), (1, "1"), (2, "1"), (2, "1")], [(1, "1"), (1, "0")])
    assert found["variance.mean"] == pytest.approx(0.5)
    assert found["n"] == 2.0


def test_nothing_varies():
    with pytest.raises(RewardlabError, match="no estimate varies on any of 1 problems"):
        measured([(1, "0"), (3, "0"), (1, "0"), (3, "0")])
