"""PQM: steps are compared with each other, and a reply is worth its worst step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of, steps

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run, Score, Trajectory
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.pqm import claim, pqm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

RUN = Run(policy=None)


def loss_of(batch: Batch, value: list[list[float]], **settings) -> list[float]:
    (prm,) = pqm(**settings).also
    return prm.recipe.objective(Outputs(value=torch.tensor(value)), batch, RUN).tolist()


def released(q: list[float], labels: list[int], zeta: float, twice: bool = True) -> float:
    """`ranking_loss` of the released code for one solution, where its sums need no padding.

    From the second step on its sum over the steps before has the step itself, which then counts twice.
    """
    wrong = sum(math.exp(x + zeta) for x, ok in zip(q, labels, strict=True) if not ok)
    total, losses = 1.0, [-math.log(1 / (1 + wrong + 1e-5))] if wrong else []
    for t, (x, ok) in enumerate(zip(q, labels, strict=True)):
        if ok:
            before = total + (math.exp(x) if t and twice else 0.0)
            losses.append(-math.log(math.exp(x) / (math.exp(x) + before + wrong + 1e-5)))
            total += math.exp(x)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("labels", [[1, 0, 0], [1, 0], [0, 0, 0], [1]])
def test_the_loss_is_that_of_the_released_code_where_that_counts_no_step_twice(labels):
    q, batch = solution(labels)
    assert loss_of(batch, [[9.0, *q]], zeta=1.5) == [pytest.approx(released(q, labels, 1.5), abs=1e-4)]


@pytest.mark.parametrize("labels", [[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]])
def test_it_differs_from_the_released_code_in_the_step_that_counts_twice_alone(labels):
    q, batch = solution(labels)
    (found,) = loss_of(batch, [[9.0, *q]], zeta=1.5)
    assert found == pytest.approx(released(q, labels, 1.5, twice=False), abs=1e-4)
    assert found < released(q, labels, 1.5) - 0.01


def solution(labels: list[int]) -> tuple[list[float], Batch]:
    batch = batch_of([[("r" + "d" * len(labels), {"x": steps({k + 1: float(y) for k, y in enumerate(labels)})})]])
    return [0.75, -0.5, 1.25][: len(labels)], batch


def test_of_two_right_steps_the_later_one_is_to_be_above_and_wrong_ones_far_below():
    right_then_wrong = {"x": steps({1: 1.0, 2: 1.0, 3: 0.0})}
    batch = batch_of([[("rddd", right_then_wrong), ("rd", {"x": steps({})})]])
    a, b, w = 1.0, 2.0, -1.0
    wrong = math.exp(w + 4)
    by_hand = math.log(1 + wrong) + math.log(1 + math.exp(a) + wrong) - a + math.log(1 + math.exp(a) + math.exp(b) + wrong) - b
    assert loss_of(batch, [[9.0, a, b, w], [9.0] * 4]) == [pytest.approx(by_hand / 3), 0.0]
    # rising scores cost less than falling ones; a classifier cannot tell them apart
    ordered, classified = (
        [loss_of(batch, [[9.0, *x, w], [9.0] * 4], loss=k)[0] for x in ((a, b), (b, a))] for k in ("rank", "bce")
    )
    assert ordered[0] < ordered[1] - 0.05
    assert classified[0] == pytest.approx(classified[1])


def test_a_step_is_right_if_one_continuation_is():
    @reward(over="groups")
    def shares(groups, run):
        return [[Score(steps=[(1, 0.25), (2, 0.0), (3, 1.0)])] for _ in groups]

    part = pqm(continuations=4).reward
    hard = type(part)(part.function, part.bound, part.options, operands=(shares(),))
    assert [y for _, y in hard([[batch_of([[("rddd", {})]]).rows[0][0]]], RUN)[0][0].steps] == [1.0, 0.0, 1.0]


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_the_model_learns_the_policy_does_not_and_the_worst_step_chooses():
    task = registry.task("arithmetic", test_size=2)
    recipe = pqm(n=2, continuations=2, choose=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    run = Run(policy, models={"prm": prm}, max_new=8, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    by = recipe.measure.settings["by"]
    (row,) = policy.write(policy.read([Trajectory(task.test[0])], [task.test[0].prompt]), ["1+1=2\n2+2=5\n3"])
    (score,) = by([[row]], run)[0]
    (said,) = by.operands[0]([[row]], run)[0]
    assert len(said.steps) == 3
    assert len({q for _, q in said.steps}) == 3
    assert score.total == pytest.approx(min(q for _, q in said.steps))
    assert recipe.measure(task.test, run)["judged"] == 1.0
    assert np.isfinite(recipe.measure(task.test, run)["reranked"])


def test_the_baseline_differs_in_the_loss_alone():
    versus, own = registry.build("pqm", claim.versus_settings), registry.build("pqm", claim.settings)
    assert versus.but(also=()) == own.but(also=())
    assert [r.also[0].recipe.objective.settings["loss"] for r in (versus, own)] == ["bce", "rank"]
