"""Rollouts that drop groups and draw further problems in their place: within a step, over steps, and after resuming."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.engine import checkpoint
from rewardlab.engine.further import further_problems
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in: whether the number of the last token is odd."""
    return float(trajectory.ids[-1] % 2)


def begun(attempts: int = 10, refills: bool = True) -> Ops:
    recipe = registry.build("dapo", {"n": 2, "problems": 4, "minibatches": 1, "attempts": attempts, "lr": 1e-2})
    run = Run(untrained(hidden=32, layers=1), max_new=3, seed=1, verify=ends_odd())
    ops = Ops(recipe.but(reward=ends_odd().named("correct")), run, registry.task("arithmetic", test_size=2), RunConfig(steps=9))
    ops.refills = refills
    return ops


def step(ops: Ops) -> list[str]:
    """Take a training step; returns the keys of the problems that it learned from."""
    ops.run.metrics = {}
    standard_loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    ops.bill.settle()
    assert ops.step_data is not None
    return [g[0].problem.key for g in ops.step_data.groups]


def test_a_step_learns_from_as_many_groups_as_it_has_problems_and_the_next_goes_on_behind_them():
    ops, small = begun(), begun(attempts=1)
    kept, left = step(ops), step(small)
    assert 0 < len(left) < 4  # or there was nothing to fill up
    assert len(kept) == 4
    assert kept[: len(left)] == left
    assert ops.position == 4 + ops.run.metrics["further_problems"]
    assert small.position == 4
    assert ops.run.tokens > small.run.tokens  # further replies cost what they cost
    assert {s.total for row in ops.step_data.scores for s in row} == {0.0, 1.0}
    assert not set(kept) & set(step(ops))  # no problem is drawn twice


def test_outside_of_the_engines_loop_nothing_further_is_drawn():
    ops = begun(refills=False)
    assert len(step(ops)) < 4
    assert ops.position == 4
    assert ops.run.more_problems is None


def test_a_resumed_run_draws_the_same_further_problems(tmp_path):
    whole, first = begun(), begun()
    keys = [step(whole) for _ in range(3)]
    assert [step(first) for _ in range(2)] == keys[:2]
    checkpoint.save(tmp_path, first.run, first.learners, first.position)
    again = begun()
    again.position = checkpoint.load(tmp_path, again.run, again.learners)
    assert step(again) == keys[2]
    assert again.run.metrics == whole.run.metrics
    assert again.position == whole.position
    weights = whole.run.policy.state()
    assert all(torch.equal(weights[k], v) for k, v in again.run.policy.state().items())


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_processes_draw_different_problems_and_go_on_from_one_position(ranks, monkeypatch):
    """Each of them as it would be beside the others, one after the other: they ask for 2, 3, 4 further problems."""
    from rewardlab.engine import further as module

    asked = {rank: rank + 2 for rank in range(ranks)}
    monkeypatch.setattr(module, "world_size", lambda: ranks)
    monkeypatch.setattr(module, "all_gather", lambda drawn: list(asked.values()))
    positions, drawn = set(), []
    for rank, n in asked.items():
        monkeypatch.setattr(module, "rank", lambda rank=rank: rank)
        ops = begun()
        ops.problems()
        with further_problems(ops, ops.run, ops.policy, across=False):
            drawn += [p.key for p in (*ops.run.more_problems(1), *ops.run.more_problems(n - 1))]
        positions.add(ops.position)
    assert len(set(drawn)) == len(drawn) == sum(asked.values())
    assert positions == {4 + ranks * max(asked.values())}
    behind = [registry.task("arithmetic", test_size=2).train[i].key for i in range(positions.pop(), 40)]
    assert not set(behind) & set(drawn)
    assert all(a != b for a, b in pairwise(behind))
