"""RLOO: the mean of the others as a baseline, and the KL of whole replies as a part of what they earn."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run

RUN = Run(policy=None)


def three_rows(*rewards):
    """Replies of 2, 1 and 1 tokens with log(pi_old / ref) of 1 + 1, 0 and -1; 9 where the policy decided nothing."""
    rows = [[("rdd", {"a": rewards[0]}), ("rd", {"a": rewards[1]}), ("rd", {"a": rewards[2]})]]
    batch = batch_of(rows, {"ref": [[-9.0, -2.0, -2.0], [-9.0, -1.0], [-9.0, 0.0]]})
    batch.old = torch.tensor([[0.0, -1.0, -1.0], [0.0, -1.0, 0.0], [0.0, -1.0, 0.0]])
    return batch


def test_the_baseline_is_the_mean_of_the_others():
    # 1 - 0;  0 - 1/2;  0 - 1/2, at every token of the reply
    batch = three_rows(outcome(1.0), outcome(0.0), outcome(0.0))
    recipe = registry.build("rloo")
    assert recipe.credit(batch.reward, batch, RUN)[batch.mask].tolist() == pytest.approx([1.0, 1.0, -0.5, -0.5])
    assert "ref" not in recipe.needs


def test_a_reply_without_a_verdict_is_in_no_baseline():
    batch = three_rows(outcome(1.0), outcome(None), outcome(0.0))
    credit = registry.build("rloo", {"beta": 0.1}).credit(batch.reward, batch, RUN)
    # .8 and .1: each less the other, and nothing for the reply between them
    assert credit[batch.mask].tolist() == pytest.approx([0.7, 0.7, 0.0, -0.7])


def test_the_kl_of_a_reply_is_a_part_of_its_reward_and_of_the_baseline_of_others():
    """beta .1: 1 - .2, 0, 0 + .1;  .8 - .05, 0 - .45, .1 - .4.  The loss is minus that times the log-prob of the reply."""
    batch = three_rows(outcome(1.0), outcome(0.0), outcome(0.0))
    recipe = registry.build("rloo", {"beta": 0.1})
    batch.credit = recipe.credit(batch.reward, batch, RUN)
    assert batch.credit[batch.mask].tolist() == pytest.approx([0.75, 0.75, -0.45, -0.3])
    assert "ref" in recipe.needs
    loss = recipe.objective(Outputs(logprobs=batch.old), batch, RUN) * recipe.weighting(batch)
    assert float(loss.sum()) == pytest.approx((2 * 0.75 - 0.45 - 0.3) / 3)


def test_of_several_rewards_each_pays_its_share_of_the_kl():
    # positions 1 and 2 of the first reply: .5 - .1 and .5 - .1;  the others' rewards 0 and 0 + .1, of which the mean is .05
    batch = three_rows(steps({1: 0.5, 2: 0.5}), outcome(0.0), outcome(0.0))
    credit = registry.build("rloo", {"beta": 0.1}).credit(batch.reward, batch, RUN)
    assert credit[0, 1:].tolist() == pytest.approx([0.4 - 0.05 + 0.4 - 0.05, 0.4 - 0.05])
