"""PPO: the KL in the reward of policy and critic, and as many updates of both."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run

RUN = Run(policy=None)


def two_rows():
    """A right reply of two tokens with log(pi_old / ref) of 1 and 2, a wrong one of one token with 0; the critic says 1/2, 1/4 | 0.

    A value stands at the position before the decision that it is for.
    """
    rows = [[("rdd", {"correct": outcome(1.0)})], [("rd", {"correct": outcome(0.0)})]]
    batch = batch_of(rows, {"ref": [[-9.0, -2.0, -3.0], [-9.0, 0.0]], "value": [[0.5, 0.25, 9.0], [0.0, 9.0]]})
    batch.old = torch.zeros(batch.mask.shape)
    batch.old[0, 1:] = torch.tensor([-1.0, -1.0])
    return batch


def test_each_token_pays_for_its_kl_in_advantages_and_in_what_the_critic_learns():
    # beta .1, lam 1/2: rewards -.1, 1 - .2 | 0;  deltas -.1 + .25 - .5 = -.35, .8 - .25 = .55 | 0;  A -.35 + .275 = -.075, .55 | 0
    # returns A + V: .425, .8 | 0;   A: mean .475/3, squares .005625 + .3025, variance (.308125 - .225625/3) / 2 = .116458
    recipe, batch = registry.build("ppo", {"beta": 0.1, "lam": 0.5}), two_rows()
    [critic] = recipe.also
    assert critic.recipe.credit(batch.reward, batch, RUN)[batch.mask].tolist() == pytest.approx([0.425, 0.8, 0.0])
    by_hand = [(a - 0.475 / 3) / 0.116458**0.5 for a in (-0.075, 0.55, 0.0)]
    assert recipe.credit(batch.reward, batch, RUN)[batch.mask].tolist() == pytest.approx(by_hand, abs=1e-4)
    assert {"old", "ref", "value"} <= {*recipe.needs}
    assert "ref" not in registry.build("ppo", {"beta": 0.0}).needs


def test_policy_and_critic_go_over_a_batch_as_often():
    for settings, epochs, minibatches in ({}, 4, 1), ({"epochs": 2, "minibatches": 3}, 2, 3):
        recipe = registry.build("ppo", settings)
        for update in (recipe.update, recipe.also[0].recipe.update):
            assert (update.epochs, update.minibatches) == (epochs, minibatches)


def test_a_step_has_as_many_rows_as_one_of_the_group_methods():
    recipe, grpo = registry.build("ppo"), registry.build("grpo")
    assert recipe.update.problems * recipe.rows_per_problem == grpo.update.problems * grpo.rows_per_problem
