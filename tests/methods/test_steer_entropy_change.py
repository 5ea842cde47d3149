"""STEER: tokens whose update would change the entropy most weigh least."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.credit.entropy import damp_entropy_change, entropy_change
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.objectives.steer_entropy_change import covariance, steer_entropy_change

LOG = [[0, math.log(0.9), 0, math.log(0.1)], [0, math.log(0.5), 0, 0]]
ENTROPY = [[7, 0.3, 7, 1.0], [7, math.log(2), 7, 7]]
# Omega = -A (1 - p)(log p + H):  A 1: -(.1)(-.105361 + .3) = -.0194639;  -(.9)(-2.302585 + 1) = 1.1723266;  -1 and log p = -H: 0
OMEGA = [-0.0194639, 1.1723266, 0.0]


def batch(verdicts=(1.0, 0.0), old=LOG):
    made = batch_of([[("rdrd", {"a": outcome(verdicts[0])}), ("rd", {"a": outcome(verdicts[1])})]], {"policy.entropy": ENTROPY})
    made.old = torch.tensor(old)
    return made


def advantages(b):
    return torch.where(b.mask, torch.tensor([[1.0], [-1.0]]), 0.0)


def test_the_estimated_change_by_hand():
    b = batch()
    found = entropy_change()(advantages(b), b, Run(policy=None))
    assert found[b.mask].tolist() == pytest.approx(OMEGA, abs=1e-6)
    assert not found[~b.mask].any()


def test_the_largest_change_gets_the_least_weight():
    b, run = batch(), Run(policy=None)
    found = damp_entropy_change(least=0.8)(advantages(b), b, run)
    # exp(log(.8) * .0194639 / 1.1723266) = .996302
    assert found[b.mask].tolist() == pytest.approx([0.996302, 0.8, -1.0], abs=1e-5)
    assert run.metrics["entropy_change"] == pytest.approx(sum(OMEGA) / 3, abs=1e-6)


def test_small_changes_are_measured_by_the_floor():
    b = batch()
    small = advantages(b) * 0.001
    found = damp_entropy_change(least=0.8, floor=0.01)(small, b, Run(policy=None))
    assert float(found[0, 3] / small[0, 3]) == pytest.approx(0.8 ** (0.0011723266 / 0.01))
    assert torch.equal(damp_entropy_change()(small * 0, b, Run(policy=None)), small * 0)


def test_the_whole_chain_leaves_out_rows_without_a_verdict():
    b, run = batch((None, 1.0), old=[[0, math.nan, 0, math.nan], LOG[1]]), Run(policy=None)
    b.old = torch.where(b.old.isnan(), -1.0, b.old)
    found = steer_entropy_change().credit(b.reward, b, run)
    # one row with a verdict: nothing to compare with
    assert not found.any()
    alone = batch()
    plain = grpo().credit(alone.reward, alone, run)
    damped = steer_entropy_change().credit(alone.reward, alone, run)
    ratio = (damped / plain)[alone.mask]
    assert ((ratio >= 0.8 - 1e-6) & (ratio <= 1)).all()
    assert float(ratio.min()) == pytest.approx(0.8)


def test_the_covariance_by_hand():
    b = batch()
    a = advantages(b)  # 1 1 -1: mean 1/3
    mean = (LOG[0][1] + LOG[0][3] + LOG[1][1]) / 3
    expected = [-2 / 3 * (LOG[0][1] - mean), -2 / 3 * (LOG[0][3] - mean), 4 / 3 * (LOG[1][1] - mean)]
    assert covariance()(a, b, Run(policy=None))[b.mask].tolist() == pytest.approx(expected)


def test_it_stands_on_any_credit():
    base = grpo().but(credit=center() >> to_go())
    assert steer_entropy_change(base).credit == base.credit >> damp_entropy_change()
    assert registry.build("dapo+steer_entropy_change", {"least": 0.7}).credit == grpo().credit >> damp_entropy_change(least=0.7)
