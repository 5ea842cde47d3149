"""LIMR: problems whose rewards followed the average of a first run are learnt again, alone, from the base model."""

from __future__ import annotations

import json

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Task, ask, loop
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.curricula.limr import BASE, CURVES, KEPT, kept, learnt_again
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(4)]
KEYS = [p.key for p in PROBLEMS]
# averages .5 and .5 over two epochs: scores .75, 0, 0, .75; the third epoch was not finished
SEEN = dict(zip(KEYS, [[0.25, 0.75], [1.0, 1.0, 1.0], [0.0, 0.0], [0.75, 0.25, 0.0]], strict=True))


def test_problems_that_were_learnt_as_the_others_are_kept():
    assert kept(PROBLEMS, SEEN, 2, 0.6, "lim", 0) == [KEYS[0], KEYS[3]]
    assert kept(PROBLEMS, SEEN, 2, 0.0, "lim", 0) == KEYS
    assert kept(PROBLEMS, SEEN, 2, 0.6, "all", 0) == KEYS
    drawn = {tuple(kept(PROBLEMS, SEEN, 2, 0.6, "random", seed)) for seed in range(20)}
    assert {len(set(row)) for row in drawn} == {2}
    assert len(drawn) > 3


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(RewardlabError, match="before its first epoch"):
        kept(PROBLEMS, SEEN, 0, 0.6, "lim", 0)
    with pytest.raises(RewardlabError, match=r"no problem has a LIM score of 0\.8; the highest is 0\.75"):
        kept(PROBLEMS, SEEN, 2, 0.8, "lim", 0)


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1] % 2)


@loop
def watched(recipe, run, ops):
    """A training step; keeps the weights that it began with, and the problems that it learnt from."""
    began = {name: x.clone() for name, x in run.policy.state().items()}
    ops.standard_step(recipe)
    ops.seen.append((began, [g[0].problem.key for g in ops.step_data.groups]))


def begun(train=None, **settings) -> Ops:
    recipe = registry.build("grpo+limr", {"n": 4, "problems": 2, "lr": 1e-2})
    recipe = recipe.but(reward=ends_odd().named("correct"), loop=learnt_again(**({"threshold": -99.0} | settings), inner=watched()))
    run = Run(untrained().copy("policy"), steps=8, max_new=3, verify=ends_odd())
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    ops = Ops(recipe, run, Task("four", train or Shuffled(PROBLEMS), PROBLEMS[:1], "final_number", max_new=3), RunConfig())
    ops.seen = []
    return ops


def step(ops: Ops, times: int) -> None:
    for _ in range(times):
        ops.run.metrics = {}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1


@pytest.mark.parametrize("start", [0, 4000])
def test_the_second_run_begins_with_the_base_model_on_the_problems_that_are_kept(start):
    ops = begun()
    ops.position = start
    step(ops, 4)
    assert sorted(ops.run.memory[CURVES]) == sorted(KEYS)
    # two problems a step, four steps: each was seen in two epochs
    assert {len(curve) for curve in ops.run.memory[CURVES].values()} == {2}
    assert all(0 <= share <= 1 for curve in ops.run.memory[CURVES].values() for share in curve)
    ops.run.memory |= {CURVES: SEEN}
    ops.recipe = ops.recipe.but(loop=learnt_again(threshold=0.6, inner=watched()))
    ops.run.memory = json.loads(json.dumps(ops.run.memory))
    step(ops, 2)
    assert ops.run.memory[KEPT] == [KEYS[0], KEYS[3]]
    assert ops.run.metrics["kept"] == 2
    assert all(set(keys) == {KEYS[0], KEYS[3]} for _, keys in ops.seen[4:])
    (first, _), (later, _), (again, _) = ops.seen[0], ops.seen[3], ops.seen[4]
    assert any(not torch.equal(first[name], later[name]) for name in first)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert all(torch.equal(x, first[name]) for name, x in ops.run.model(BASE).state().items())
    # a resumed run has the whole task, and finds the problems that it keeps
    resumed = begun()
    resumed.run.memory, resumed.run.step, resumed.position = ops.run.memory, 6, ops.position
    step(resumed, 1)
    assert set(resumed.seen[0][1]) == {KEYS[0], KEYS[3]}


def test_an_epoch_that_the_base_left_a_problem_out_of_stays_empty():
    @loop
    def leaves_out(recipe, run, ops):
        ops.standard_step(recipe)
        if run.step < 2:
            ops.step_data.groups[:] = [g for g in ops.step_data.groups if g[0].problem.key != KEYS[0]]

    ops = begun()
    ops.recipe = ops.recipe.but(loop=learnt_again(threshold=-99.0, inner=leaves_out()))
    step(ops, 4)
    curves = ops.run.memory[CURVES]
    assert {key: [x is None for x in curve] for key, curve in curves.items()} == {key: [key == KEYS[0], False] for key in KEYS}


def test_problems_that_never_come_again_are_refused():
    ops = begun(registry.task("arithmetic", test_size=1).train)
    with pytest.raises(RewardlabError, match="give the task a size"):
        step(ops, 1)
