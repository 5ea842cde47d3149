"""ProRL: a reference that follows when validation stalls."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, loop, measure
from rewardlab.engine import checkpoint
from rewardlab.engine.overlong import NothingFits
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.prorl import MEMORY, prorl, reset_when_stalled
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

VALUES = [0.3, 0.5, 0.5, 0.4, 0.4, 0.45, 0.4]
"""What the validations after each step find; before the next one, the policy may become the reference."""


@reward
def ends_odd(trajectory):
    return float(trajectory.ids[-1] % 2)


@measure
def told(problems, run):
    return {"score": VALUES[run.memory["validations"] - 1], "others": 9.0}


@loop
def too_long(recipe, run, ops):
    raise NothingFits("no row fits")


def begun(**settings) -> Ops:
    given = {"n": 2, "problems": 2, "minibatches": 1, "lr": 1e-2, "check": 1, "stalls": 2, "attempts": 1, **settings}
    recipe = registry.build("prorl", given).but(reward=ends_odd().named("correct"), measure=told())
    run = Run(untrained(hidden=32, layers=1), max_new=3, seed=1, steps=9, verify=ends_odd())
    run.reference = run.policy.copy("reference")
    return Ops(recipe, run, registry.task("arithmetic", test_size=2), RunConfig(steps=9))


def step(ops: Ops) -> bool:
    """Take a training step; whether the policy before it is the reference."""
    ops.run.metrics = {}
    ops.run.memory["validations"] = ops.run.step
    policy = {name: x.clone() for name, x in ops.run.policy.state().items()}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return all(torch.equal(x, policy[name]) for name, x in ops.run.reference.state().items())


def test_the_reference_is_reset_when_validation_has_not_risen_twice_in_a_row():
    ops = begun()
    # .3, .5 rise; .5 and .4 do not: reset, and from then on .4 is the best. .4 does not rise, .45 does, .4 does not
    step(ops)
    assert [step(ops) for _ in VALUES] == [False, False, False, True, False, False, False]
    assert ops.run.memory[MEMORY] == {"best": 0.45, "without": 1, "resets": 1}
    assert ops.run.metrics["resets"] == 1
    assert ops.run.metrics["validation"] == 0.4


def test_what_counts_as_progress_and_how_often_it_is_looked_at():
    # only rises by more than .25 count:  .3, then .5 and .5 do not
    slow, seldom = begun(gain=0.25), begun(check=2, stalls=1)
    step(slow), step(seldom)
    assert [step(slow) for _ in range(3)] == [False, False, True]
    # every other step:  .5 after two, .4 after four: a reset
    assert [step(seldom) for _ in range(4)] == [False, False, False, True]


def test_the_optimiser_starts_over_with_the_reference():
    ops = begun()
    for _ in range(4):
        step(ops)
    assert _updates(ops) == 4
    step(ops)
    assert _updates(ops) == 1


def _updates(ops: Ops) -> int:
    """Those that the moments of the optimiser are of."""
    return int(next(iter(ops.policy.optimiser.state_dict()["state"].values()))["step"])


def test_a_stage_before_which_a_step_is_left_out_is_not_missed():
    ops = begun()
    for _ in range(3):
        step(ops)
    ops.run.metrics, ops.run.memory["validations"] = {}, 3

    with pytest.raises(NothingFits):
        reset_when_stalled(check=1, stalls=2, inner=too_long())(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert step(ops)


def test_after_a_reset_the_kl_begins_at_0_again():
    ops, kl = begun(beta=0.1), []
    for _ in range(5):
        step(ops)
        kl.append(ops.run.metrics["loss/kl_to_reference"])
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert kl[3] > 1e-4
    assert kl[4] == pytest.approx(0, abs=1e-6)


def test_without_held_out_problems_it_says_what_is_missing():
    ops = begun()
    step(ops)
    ops.task = replace(ops.task, test=[])
    with pytest.raises(RewardlabError, match="stalls=0"):
        step(ops)


def test_stalls_0_never_resets_and_nothing_is_added_to_the_rewards():
    fixed = begun(stalls=0)
    assert step(fixed)
    assert [step(fixed) for _ in VALUES] == [False] * len(VALUES)
    assert (fixed.run.metrics["resets"], "validation" in fixed.run.metrics) == (0, False)
    assert str(prorl().reward) == "correct()"
    assert prorl(beta=0.0).needs == ("old",)


def test_a_checkpoint_goes_on_with_the_reference_that_it_was_made_with(tmp_path):
    ops = begun()
    checkpoint.save_reference(tmp_path, ops.run.reference, 0)
    for _ in range(4):
        step(ops)
    checkpoint.save(tmp_path, ops.run, ops.learners, ops.position)
    state = json.loads((checkpoint.checkpoints(tmp_path)[-1] / "state.json").read_text())
    assert state["step"] == 4
    step(ops)
    # killed here: the reference is in place, its checkpoint is not
    checkpoint.save_reference(tmp_path, ops.run.reference, 5)
    again = begun()
    again.position = checkpoint.load(tmp_path, again.run, again.learners)
    checkpoint.load_reference(tmp_path, again.run.reference, again.run.step)
    assert all(torch.equal(x, begun().run.reference.state()[name]) for name, x in again.run.reference.state().items())
    assert step(again)
    assert all(torch.equal(x, ops.run.policy.state()[name]) for name, x in again.run.policy.state().items())
    checkpoint.load_reference(tmp_path, again.run.reference, 5)
    assert all(torch.equal(x, ops.run.reference.state()[name]) for name, x in again.run.reference.state().items())
