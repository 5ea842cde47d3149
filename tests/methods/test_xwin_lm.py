"""Xwin-LM: SFT, imitation of the best of n replies, and DPO on ranks, each from where the one before ended."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled
from tests.helpers.extremes import at_the_ends, watch

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3") for i in range(10, 18)]
TASK = Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4)


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def begun(**settings) -> Ops:
    given = {"score": last_token(), "problems": 4, "n": 4, "sft_steps": 1, "best_steps": 1, "lr": 1e-3} | settings
    recipe = registry.build("xwin_lm", given)
    run = Run(untrained().copy("policy"), steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    return Ops(recipe, run, TASK, RunConfig())


def step(ops: Ops) -> tuple[list[list[str]], dict[str, float]]:
    """A training step: the replies that it learnt from, by group, and what it logged."""
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert ops.step_data is not None
    return [[t.reply for t in group] for group in ops.step_data.groups], ops.run.metrics


def same(a, b) -> bool:
    return all(torch.equal(x, b.state()[name]) for name, x in a.state().items())


def test_each_stage_learns_from_what_the_one_before_made():
    ops = begun()
    run, start = ops.run, {name: x.clone() for name, x in ops.run.policy.state().items()}
    replies, logged = step(ops)
    assert (logged["stage"], sorted(map(len, replies))) == (1, [1] * 4)
    assert {text for (text,) in replies} <= {p.meta["chosen"] for p in PROBLEMS}
    # SFT changed the policy, and the writer is the policy as SFT left it
    assert any(not torch.equal(x, start[name]) for name, x in run.policy.state().items())
    imitated = run.policy.copy("imitated")
    sampled = watch(run.models["writer"])
    best, logged = step(ops)
    assert same(run.models["writer"], imitated)
    assert same(run.reference, imitated)
    assert (logged["stage"], {len(row) for row in best}) == (2, {1})
    assert len(sampled) == 16
    assert all(first for first, _ in at_the_ends(ops, sampled))
    assert not same(run.models["writer"], run.policy)
    best_of = run.policy.copy("best_of")
    writer = {name: x.clone() for name, x in run.models["writer"].state().items()}
    sampled.clear()
    pairs, logged = step(ops)
    assert (logged["stage"], {len(row) for row in pairs}) == (3, {2})
    assert set(at_the_ends(ops, sampled)) == {(True, True)}
    # policy and reference agree where DPO begins: every pair costs log 2
    assert logged["loss"] == pytest.approx(0.6931, abs=1e-3)
    assert same(run.reference, best_of)
    assert all(torch.equal(x, writer[name]) for name, x in run.models["writer"].state().items())


def test_the_rejected_rank_is_a_setting_and_the_chosen_is_the_best():
    assert registry.build("xwin_lm").rollout.settings["ranks"] == (0, -1)
    assert registry.build("xwin_lm", {"rank": 3}).rollout.settings["ranks"] == (0, 3)


def test_a_reward_model_is_taught_once_in_the_first_step():
    recipe = registry.build("xwin_lm", {"pairs": 8})
    assert [learner.name for learner in recipe.also] == ["reward_model", "writer"]
    assert "inner=taught_first(pairs=8" in str(recipe.loop)
