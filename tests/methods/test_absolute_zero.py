"""Absolute Zero: six baselines, and one policy that learns both roles."""

from dataclasses import replace

import pytest
import torch

from rewardlab import build, registry
from rewardlab.core import Batch, Run, Score, Trajectory, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.sampling.absolute_zero import by_kind_and_role, solved
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig


def test_rewards_are_normalised_within_kind_and_role_whatever_the_groups():
    tags = ["propose.deduction", "propose.deduction", "solve.deduction", "solve.induction", "solve.deduction", "propose.induction"]
    reward = torch.tensor([0.75, -1.0, 1.0, 1.0, -0.5, 0.5])
    mask = torch.tensor([[False, True, True]] * 6)
    table = torch.zeros(6, 3).index_put((torch.arange(6), torch.tensor(2)), reward)
    rows = [(replace(Trajectory(ask("?")), tag=t), Score(r)) for t, r in zip(tags, reward.tolist(), strict=True)]
    given = table != 0
    batch = Batch(mask.long(), mask, mask.sum(1) + 1, table, table, given, torch.arange(6), rows=rows)
    got = by_kind_and_role(proposer=2.0, eps=0.0)(table, batch, None)
    # of two numbers each is one half of their distance from the mean, and the unbiased std is their distance / sqrt 2
    half = 0.5 * 2**0.5
    assert got[:, 1].tolist() == pytest.approx([2 * half, -2 * half, half, 0, -half, 0])
    assert torch.equal(got[:, 1], got[:, 2])
    assert not got[:, 0].any()


def test_a_row_without_a_verdict_enters_no_statistic():
    mask, table = torch.ones(3, 1, dtype=torch.bool), torch.tensor([[1.0], [0.0], [0.0]])
    given = torch.tensor([[True], [True], [False]])
    rows = [(replace(Trajectory(ask("?")), tag="solve.deduction"), None)] * 3
    batch = Batch(mask.long(), mask, mask.sum(1), table, table, given, torch.zeros(3, dtype=torch.long), rows=rows)
    half = 0.5 * 2**0.5
    assert by_kind_and_role(eps=0.0)(table, batch, None).squeeze(1).tolist() == pytest.approx([half, -half, 0])


def test_one_step_of_play_teaches_the_policy():
    task = registry.task("triplets")
    policy = untrained(0, task=task)
    recipe = build("absolute_zero", {"n": 4, "problems": 3, "language": "list"})
    recipe = recipe.but(reward=recipe.reward + registry.part("reward", "likelihood"))
    run = Run(policy, steps=1, max_new=8, verify=registry.part("reward", "triplet_answer"))
    ops = Ops(recipe, run, task, RunConfig())
    before = {k: v.clone() for k, v in policy.state().items()}
    standard_loop(recipe, run, ops)
    assert any(not torch.equal(before[k], v) for k, v in policy.state().items())
    assert run.metrics["proposals_valid"] == 0
    found = solved()(task.test[:9], run.detached())
    assert found["n"] == 9
    assert found["pass@1"] == 0
