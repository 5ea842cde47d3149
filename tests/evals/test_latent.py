"""Whether what a part learnt from right replies tells right ones from wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, credit, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.intrinsic.rlfr import learnt_auc
from rewardlab.rewards.reward import reward

VERDICTS = {"right": 1.0, "wrong": 0.0}


class Unsure:
    """A policy whose entropy is the higher, the lower a token's number."""

    device = torch.device("cpu")

    def evaluate(self, batch, wants):
        return Outputs(entropy=torch.where(batch.mask, 100.0 - batch.ids, 0.0))


@reward
def verify(trajectory):
    return VERDICTS.get(trajectory.reply)


@credit
def far_from_what_was_right(a, batch, run):
    """How far tokens are from the mean of the right ones so far, at all decisions but the last."""
    learnt = run.memory.setdefault("learnt", [])
    table = torch.zeros(batch.mask.shape)
    if learnt:
        inner = batch.mask & ~batch.rewarded
        table = torch.where(inner, (batch.ids - float(np.mean(learnt))).abs() + 1, 0.0)
    learnt += batch.ids[batch.mask & (batch.reward.sum(1, keepdim=True) > 0)].tolist()
    return table


def reply(verdict: str, *ids: int) -> Trajectory:
    zero = np.zeros(len(ids), np.float32)
    return Trajectory(ask("Q"), (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.array(ids), zero, zero, verdict)), "end")


# the first half teaches 5; what is wrong there, or not judged, does not
TAUGHT = [[reply("right", 5, 5), reply("wrong", 50, 50), reply("?", 70, 70)], [reply("right", 5, 5, 5)]]


def measured(*groups, run: Run | None = None) -> dict[str, float]:
    @rollout
    def given(problems, run):
        return [*TAUGHT, *groups]

    run = run or Run(policy=Unsure())
    run.verify = verify()
    return learnt_auc(rollout=given(), scorer=far_from_what_was_right(), steps=3, rows=2)([], run)


def test_the_lower_mean_is_the_right_one_and_entropy_is_measured_alike():
    run = Run(policy=Unsure())
    # right ones are 0 and 15 off, the wrong one 4: one of two pairs; then one of one. The last tokens have no number
    groups = [reply("right", 5, 99), reply("right", 20, 5), reply("wrong", 9, 5), reply("?", 5, 5)], [
        reply("right", 5, 5), reply("wrong", 7, 7),
    ]  # fmt: skip
    found = measured(*groups, run=run)
    assert found["auc.scorer"] == pytest.approx((0.5 + 1) / 2)
    # entropies 48 and 87.5 against 93;  95 against 93
    assert found["auc.entropy"] == pytest.approx((1 + 0) / 2)
    assert found["n"] == 2
    # it learns aside
    assert run.memory == {}


def test_a_reply_without_any_number_is_not_the_best_one():
    short = reply("wrong", 9)
    found = measured([reply("right", 5, 5), reply("wrong", 9, 9), short], [reply("right", 5, 5), short])
    assert found["auc.scorer"] == 1
    # the second problem has nothing to compare
    assert found["n"] == 1


@rollout
def all_wrong(problems, run):
    return [[reply("wrong", 1, 1)]] * 6


def test_what_cannot_be_measured_is_said():
    with pytest.raises(RewardlabError, match="none of 2 problems has both"):
        measured([reply("right", 5, 5)], [reply("wrong", 5, 5)])
    part = learnt_auc(rollout=all_wrong(), scorer=far_from_what_was_right())
    with pytest.raises(RewardlabError, match="no reply to the first 3 problems is right"):
        part([], Run(policy=Unsure(), verify=verify()))
