"""OPO: a group's baseline weighs replies by their length."""

from __future__ import annotations

import pytest
import torch
from lengths import credits, group_of, run_at
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run
from rewardlab.credit.group import subtract_mean_over_tokens
from rewardlab.credit.value import to_go
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.credit.opo import check, opo


def test_the_advantages_by_hand():
    # right 2, wrong 6, without a verdict 9: b = 2/8;   all right: b = 1;   one reply: b its own reward;   nobody judged
    groups = [group_of("rw?", [2, 6, 9]), group_of("rr", [1, 5]), group_of("r", [3]), group_of("??", [2, 2])]
    assert credits(opo(), groups, run_at()) == pytest.approx([0.75, -0.25, 0, 0, 0, 0, 0, 0])
    # equal lengths: the group's mean, and no deviation
    assert credits(opo(), [group_of("rwww", [4] * 4)], run_at()) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_several_rewards_in_a_reply_and_text_that_is_read():
    # returns 3 3 (read) 1 and 0 over decided positions: b = (3 + 3 + 1 + 0)/4
    batch = batch_of([[("rddrd", {"a": steps({1: 0.0, 2: 2.0, 4: 1.0})}), ("rd", {"a": outcome(0.0)})]])
    found = (to_go() >> subtract_mean_over_tokens())(batch.reward, batch, Run(policy=None))
    assert found[0].tolist() == pytest.approx([0, 1.25, 1.25, 0, -0.75])
    assert found[1].tolist() == pytest.approx([0, -1.75, 0, 0, 0])


def test_the_loss_is_reinforces_whatever_the_policy_has_become():
    batch = batch_of([[("rd", {"a": outcome(1.0)}), ("rdd", {"a": outcome(0.0)})]])
    recipe = opo()
    batch.credit, batch.old = recipe.credit(batch.reward, batch, Run(policy=None)), torch.full((2, 3), -9.0)
    loss = recipe.objective(Outputs(logprobs=torch.full((2, 3), -2.0)), batch, Run(policy=None))
    # b 1/3: -2/3 * -2, and -(-1/3) * -2; nothing is clipped at a ratio of e^7
    assert loss[batch.mask].tolist() == pytest.approx([4 / 3, -2 / 3, -2 / 3])
    assert recipe.weighting(batch)[batch.mask].tolist() == pytest.approx([1 / 3] * 3)


def test_one_update_on_a_batch_even_of_a_base_with_more():
    assert (opo().update.epochs, opo().update.minibatches) == (1, 1)
    base = grpo(beta=0.1).but(epochs=2, minibatches=4)
    made = opo(base)
    assert (made.update.epochs, made.update.minibatches) == (1, 1)
    assert "ref" not in made.needs
    assert made.rollout == base.rollout
    assert registry.build("opo", {"n": 3}).rows_per_problem == 3


def test_the_claim_compares_its_own_credit():
    assert check.by.settings["credits"]["length"] == opo().credit
