"""TempFlow-GRPO: weights by noise level, and credit for one step alone."""

from __future__ import annotations

import math

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.diffusion.tempflow_grpo import by_noise_level, tempflow_grpo
from rewardlab.models.embedded import untrained
from rewardlab.policies.diffusion.denoiser import Denoiser


def flow(steps=4):
    return Denoiser({"steps": steps, "noise": 1.0, "hidden": 8, "layers": 1}, torch.device("cpu")).initialise(
        torch.Generator().manual_seed(0)
    )


def test_credit_falls_on_the_branching_step_weighed_by_its_noise():
    """Four steps with a = 1: sigma^2 = 4, 3, 1, 1/3 (see test_denoiser), and sqrt(dt) cancels in the norm.

    Levels 2, 1.73205, 1, 0.57735: mean 1.32735. Groups of two with rewards 1 and 0: centred to +-0.5, divided by the unbiased
    std 0.7071 (+ 1e-4).
    """
    policy = flow()
    recipe, task = tempflow_grpo(n=2), registry.task("flows", test_size=2)
    run = Run(policy, max_new=4)
    groups = recipe.rollout([task.train[0]], run)
    batch = collate(groups, [[Score(1.0), Score(0.0)]] * 4, policy.device)
    credit = recipe.credit(batch.reward, batch, run)
    unit = 0.5 / (math.sqrt(0.5) + 1e-4)
    for g, level in enumerate((2.0, math.sqrt(3), 1.0, math.sqrt(1 / 3))):
        want = torch.zeros(2, 6)
        want[:, 2 + g] = torch.tensor([unit, -unit]) * level / ((3 + math.sqrt(3) + math.sqrt(1 / 3)) / 4)
        assert torch.allclose(credit[2 * g : 2 * g + 2], want, atol=1e-5)


def test_without_its_two_ideas_it_is_flow_grpo():
    """Every step drawn, each with the row's own advantage, unweighted."""
    policy = flow()
    recipe, task = tempflow_grpo(n=2, branching=False, noise_weight=False), registry.task("flows", test_size=2)
    run = Run(policy, max_new=4)
    groups = recipe.rollout([task.train[0]], run)
    batch = collate(groups, [[Score(1.0), Score(0.0)]], policy.device)
    credit = recipe.credit(batch.reward, batch, run)
    unit = 0.5 / (math.sqrt(0.5) + 1e-4)
    assert torch.allclose(credit, torch.tensor([[0, 0, *[unit] * 4], [0, 0, *[-unit] * 4]]))
    assert groups[0][0].ids[1].tolist() != groups[0][1].ids[1].tolist()


def test_an_update_learns_from_as_many_decisions_as_flow_grpos():
    policy, task = index_policy(), registry.task("flows", test_size=2)
    recipes = tempflow_grpo(), tempflow_grpo(branching=False, noise_weight=False)
    decisions, weights = [], []
    for recipe in recipes:
        groups = recipe.rollout([task.train[0]], Run(policy, max_new=10))
        batch = collate(groups, [[Score(0.0)] * len(g) for g in groups], policy.device)
        decisions.append(int(batch.mask.sum()))
        weights.append(recipe.weighting(batch)[batch.mask])
    assert decisions == [80, 80]  # 10 steps x 8 rows
    # and each of them weighs the same, in both
    assert all(torch.allclose(w, torch.tensor(1 / 80)) for w in weights)
    assert recipes[0].update == recipes[1].update


def test_the_reward_falls_with_the_noise_of_the_step_that_is_drawn():
    """What the weights are for: early steps move where a row ends far more than late ones do."""
    policy = index_policy()
    run = Run(policy, max_new=10)
    task = registry.task("flows", test_size=2)
    groups = tempflow_grpo(n=16).rollout([task.train[i] for i in range(4)], run)
    spread = [torch.tensor([t.ids[-1].tolist() for t in g]).std(0).norm() for g in groups]
    early, late = (torch.stack([spread[10 * p + k] for p in range(4)]).mean() for k in (0, 9))
    assert early > 3 * late


def index_policy():
    return flow(10)


def test_a_policy_that_takes_no_steps_is_refused():
    with pytest.raises(RewardlabError, match="denoising steps"):
        by_noise_level()(torch.zeros(1, 3), None, Run(untrained()))
