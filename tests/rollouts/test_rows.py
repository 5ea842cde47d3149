"""`Recipe.rows_per_problem` against what the rollouts of the methods return."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.models.embedded import untrained
from rewardlab.policies.control.actor import Actor, Shape
from rewardlab.policies.diffusion.denoiser import Denoiser

POLICIES = {
    "gridworld": lambda task: Actor(Shape(6, 4)),
    "pointmass": lambda task: Actor(Shape(6, 2, discrete=False)),
    "flows": lambda task: Denoiser({"hidden": 16, "layers": 2}, torch.device("cpu")).initialise(torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize(
    ("name", "settings", "task", "rows"),
    [
        ("grpo", {"n": 3}, "arithmetic", 3),
        ("prime", {"n": 3, "low": 0.0, "high": 1.0}, "arithmetic", 3),
        ("dapo+april", {"n": 3, "low": 0.0, "high": 1.0, "spare": 0.0}, "arithmetic", 3),
        ("absolute_zero", {"n": 2, "language": "list"}, "triplets", 3),
        ("dvts", {"trees": 3}, "arithmetic", 3),
        ("rebase", {"n": 3}, "arithmetic", 3),
        ("particle_filtering", {"n": 3}, "arithmetic", 3),
        ("sft", {}, "arithmetic", 1),
        ("dpo", {}, "preferences", 2),
        ("step_dpo", {}, "preferences", 2),
        ("kto", {}, "preferences", 2),
        ("igpo", {"n": 2, "turns": 1}, "facts", 2),
        ("barfi", {"turns": 2}, "gridworld", 1),
        ("ipl", {}, "pointmass", 2),
        ("reno", {"n": 3}, "flows", 3),
        ("tempflow_grpo", {"n": 2, "points": 3}, "flows", 6),
    ],
)
def test_rows_per_problem_are_those_that_the_rollout_returns(name, settings, task, rows):
    recipe, world = registry.build(name, settings), registry.task(task)
    policy = POLICIES.get(task, lambda task: untrained(0, task=task))(world)
    run = Run(policy, seed=1, max_new=4, verify=registry.part("reward", world.verifier))
    assert recipe.rows_per_problem == rows
    assert sum(map(len, recipe.rollout([world.train[0], world.train[1]], run))) == 2 * rows


def test_a_search_tree_has_at_most_so_many_leaves():
    # every iteration turns one leaf into `branch`
    assert registry.build("rest_mcts_star", {"iterations": 4, "branch": 3}).rows_per_problem == 9
