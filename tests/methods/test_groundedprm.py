"""GroundedPRM: labels of trees by tool and outcome, a model of them, and a greedy search by it."""

from __future__ import annotations

import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.groundedprm import check, groundedprm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import sound_steps
from rewardlab.runs.config import RunConfig


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=2)
    recipe = groundedprm(iterations=2, branch=2, tries=2, lr=1e-2, init="value-head", check=sound_steps()).but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    assert 0 <= recipe.measure(task.test, run)["search"] <= 1


def test_what_its_claim_measures():
    task = registry.task("arithmetic", test_size=2)
    found = check.by(task.test, Run(untrained(hidden=32, layers=1), max_new=6, seed=1, verify=even()))
    assert {check.measure, check.against, check.fault.number} <= set(found)
