"""Losses on labels of steps, against sums done by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rewardlab.core import Outputs
from rewardlab.objectives.step_labels import ratios_of_steps, value_of_steps
from tests.helpers.rows import batch_of, steps


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def loss_of(labels, q, **settings):
    """One row whose steps end at 2, 4, 6, ... with these labels and log-odds; None: no label."""
    ends = range(2, 2 + 2 * len(labels), 2)
    known = {at: y for at, y in zip(ends, labels, strict=True) if y is not None}
    batch = batch_of([[("r" + "d" * (2 * len(labels) + 1), {"x": steps(known)})]])
    value = torch.full(batch.mask.shape, 9.0)
    for at, x in zip(ends, q, strict=True):
        value[0, at] = x
    return float(value_of_steps(**settings)(Outputs(value=value), batch, None))


def test_cross_entropy_of_rounded_labels_and_of_shares():
    q = (0.4, -1.0, 2.0)
    soft = [-(y * math.log(sigmoid(x)) + (1 - y) * math.log(1 - sigmoid(x))) for y, x in ((0.75, 0.4), (0.25, -1.0))]
    hard = [-math.log(sigmoid(0.4)), -math.log(1 - sigmoid(-1.0))]
    assert loss_of((0.75, 0.25, None), q, loss="soft") == pytest.approx(sum(soft) / 2)
    assert loss_of((0.75, 0.25, None), q, loss="bce") == pytest.approx(sum(hard) / 2)


def test_squares_and_quantiles():
    off = (0.75 - sigmoid(0.4), 0.1 - sigmoid(0.5))
    assert loss_of((0.75, 0.1), (0.4, 0.5), loss="mse") == pytest.approx((off[0] ** 2 + off[1] ** 2) / 2)
    # above the estimate a miss costs tau, below it 1 - tau
    assert off[0] > 0 > off[1]
    assert loss_of((0.75, 0.1), (0.4, 0.5), loss="quantile", tau=0.2) == pytest.approx((0.2 * off[0] - 0.8 * off[1]) / 2)


def test_pqms_comparative_loss():
    a, b, w = 0.5, 1.5, -0.25
    wrong = math.exp(w + 2)
    # the prompt, whose Q is 0, is the first of the right ones
    of_prompt, first = math.log(1 + wrong), math.log(1 + math.exp(a) + wrong) - a
    second = math.log(1 + math.exp(a) + math.exp(b) + wrong) - b
    assert loss_of((1, 1, 0), (a, b, w), loss="rank", zeta=2.0) == pytest.approx((of_prompt + first + second) / 3)
    # without a wrong step the prompt is above no other; a right step is above the prompt
    assert loss_of((1,), (a,), loss="rank") == pytest.approx(math.log(1 + math.exp(a)) - a)
    # without a right step, the wrong ones are below the prompt
    assert loss_of((0, 0), (a, b), loss="rank") == pytest.approx(math.log(1 + math.exp(a + 4) + math.exp(b + 4)))
    assert loss_of((None,), (a,), loss="rank") == 0


def test_log_ratios_are_summed_over_each_step():
    batch = batch_of([[("rddddd", {"x": steps({2: 1.0, 5: 0.0})})]], {"ref": [[0.0] * 6]})
    trajectory, _score = batch.rows[0]
    object.__setattr__(trajectory, "steps", (2, 5))
    logprobs = torch.tensor([[7.0, 0.1, 0.2, 0.3, 0.4, 0.5]])
    expected = -(math.log(sigmoid(2 * 0.3)) + math.log(1 - sigmoid(2 * 1.2))) / 2
    assert float(ratios_of_steps(beta=2.0)(Outputs(logprobs=logprobs), batch, None)) == pytest.approx(expected, rel=1e-5)


def test_a_verdict_on_the_whole_is_learnt_by_the_ratio_of_all_its_tokens():
    batch = batch_of([[("rddddd", {"x": steps({5: 1.0})})]], {"ref": [[0.0] * 6]})
    object.__setattr__(batch.rows[0][0], "steps", (2, 5))
    logprobs = torch.tensor([[7.0, 0.1, 0.2, 0.3, 0.4, 0.5]])
    expected = -math.log(sigmoid(2 * 1.5))
    assert float(ratios_of_steps(beta=2.0, sums=True)(Outputs(logprobs=logprobs), batch, None)) == pytest.approx(expected, rel=1e-5)
