"""Online iterative DPO: the writer follows, the reference stays."""

from __future__ import annotations

import pytest
import torch
from lengths import reply

from rewardlab import registry
from rewardlab.core import Run, Task, ask, loop
from rewardlab.engine.step import Ops
from rewardlab.methods.objectives.rlhf_workflow_online import WRITER, rlhf_workflow_online
from rewardlab.models.embedded import untrained
from rewardlab.rewards.length import tokens
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def ops_of(**settings) -> Ops:
    given = {"score": last_token(), "problems": 4, "n": 4, "round_steps": 2, "lr": 1e-3, **settings}
    recipe, policy = registry.build("rlhf_workflow_online", given), untrained(hidden=32, layers=1)
    run = Run(policy, policy.copy("reference"), {WRITER: policy.copy(WRITER)}, steps=5, max_new=4)
    run.verify = registry.part("reward", "final_number")
    return Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())


def state(model) -> dict[str, torch.Tensor]:
    return {name: x.clone() for name, x in model.state().items()}


def same(a, b) -> bool:
    return all(torch.equal(x, b[name]) for name, x in a.items())


def test_each_round_is_written_by_the_policy_that_it_begins_with_and_the_reference_never_moves():
    ops = ops_of()
    first, begins, rounds, updates = state(ops.run.policy), [], [], []
    for _ in range(5):
        before = state(ops.run.policy)
        ops.run.metrics = {}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1
        begins.append(same(before, state(ops.run.model(WRITER))))
        rounds.append(ops.run.metrics["round"])
        updates.append({int(s["step"]) for s in ops.policy.optimiser.state.values()})
        assert same(first, state(ops.run.reference))
        assert {len(group) for group in ops.step_data.groups} == {2}
    assert (begins, rounds) == ([True, False, True, False, True], [1, 1, 2, 2, 3])
    # the optimiser's own count starts over with each round
    assert updates == [{1}, {2}, {1}, {2}, {1}]


def test_the_run_has_three_rounds_whatever_its_length():
    ops = ops_of(round_steps=None)
    ops.run.steps, rounds = 6, []
    for ops.run.step in range(6):
        ops.recipe.loop.but(inner=nothing())(ops.recipe, ops.run, ops)
        rounds.append(ops.run.metrics["round"])
    assert rounds == [1, 1, 2, 2, 3, 3]
    # of fewer steps than rounds each is one
    ops.run.steps, ops.run.step = 2, 1
    ops.recipe.loop.but(inner=nothing())(ops.recipe, ops.run, ops)
    assert ops.run.metrics["round"] == 2


@loop
def nothing(recipe, run, ops):
    """A step that changes nothing."""


def test_without_a_cost_of_tokens_the_reward_model_alone_chooses():
    free, costly = (str(rlhf_workflow_online(score=last_token(), per_token=x).rollout) for x in (0.0, 0.5))
    assert "length_penalty" not in free
    assert "length_penalty(per_token=0.5)" in costly
    assert str(rlhf_workflow_online(per_token=0.5).reward) == "model_score()"


def test_the_pair_is_the_best_and_the_worst_less_what_their_tokens_cost():
    recipe = rlhf_workflow_online(score=tokens(), per_token=2.0)
    by = recipe.rollout.settings["by"]
    (scores,) = by([[reply(1), reply(3), reply(2)]], Run(None))
    # a reward model that likes length pays 1 a token, of which 2 are taken back: the shortest is the best
    assert [s.total for s in scores] == pytest.approx([-1, -3, -2])
    (scores,) = recipe.reward([[reply(1), reply(3)]], Run(None))
    assert [s.total for s in scores] == [1, 3]
