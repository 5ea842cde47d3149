"""ER-PRM: a process reward model of the soft maxima of continuations."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, Term, Trajectory, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.er_prm import claim, er_prm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.progress import soft_best
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def released(labels: list[int], coefficient: float) -> float:
    """`normalize_score` of the released code."""
    share = sum(labels) / len(labels)
    return abs(math.log((1 - share) * math.exp(0) + share * math.exp(coefficient)) / coefficient)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 0, 0, 0], [1, 1, 0], [1]])
@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0, 10.0])
def test_labels_are_those_of_the_released_code(labels, eta):
    assert soft_best.function(sum(labels) / len(labels), eta=eta) == pytest.approx(released(labels, eta))


@reward(over="groups")
def shares(groups, run):
    """A right reply whose first step is continued rightly once in four times, and one without a verdict."""
    return [[Score(terms={"s": Term(None, ((1, 0.25), (2, 1.0)))}, missing=len(t) == 2) for t in group] for group in groups]


def test_the_loss_by_hand():
    labels = soft_best(shares(), eta=2.0)
    batch = batch_of([[("rdd", {}), ("rd", {})]])
    scored = labels([[t for t, _ in batch.rows]], Run(policy=None))[0]
    batch = batch_of([[("rdd", {"l": Term(None, scored[0].steps)}), ("rd", {"l": Term(None, ())})]])
    value = torch.tensor([[9.0, 0.5, 2.0], [9.0, 9.0, 9.0]])
    (prm,) = er_prm().also
    loss = prm.recipe.objective(Outputs(value=value), batch, Run(policy=None))
    y = math.log(0.75 + 0.25 * math.exp(2)) / 2
    p, q = 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-2))
    assert loss[0].item() == pytest.approx(-(y * math.log(p) + (1 - y) * math.log(1 - p) + math.log(q)) / 2, abs=1e-6)
    assert loss[1] == 0


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=2)
    recipe = er_prm(n=2, continuations=2, choose=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    found = recipe.measure(task.test, run)
    assert 0 <= found["reranked"] <= 1
    assert found["judged"] == 1.0


def test_a_reply_is_worth_its_worst_step():
    policy, by = untrained(hidden=32, layers=1), er_prm().measure.settings["by"]
    prm = policy.copy("prm", value_head=True)
    with torch.no_grad():
        prm.model.value_head.normal_(generator=torch.Generator().manual_seed(0))
    (row,) = policy.write(policy.read([Trajectory(ask("1+1=?"))], [ask("1+1=?").prompt]), ["1+1=3\n2+2=5\n3"])
    run = Run(policy, models={"prm": prm})
    said = [v for _, v in by.operands[0]([[row]], run)[0][0].steps]
    assert len(set(said)) == 3
    assert min(said) < said[-1]
    assert by([[row]], run)[0][0].total == pytest.approx(min(said))


def test_eta_is_that_of_the_released_command():
    eta = er_prm().reward.settings["eta"]
    # one of four continuations right, --coefficient 1: log(1 + (e - 1) / 4)
    assert soft_best.function(0.25, eta=eta) == pytest.approx(released([1, 0, 0, 0], 1.0)) == pytest.approx(0.357374, abs=1e-6)


def test_at_zero_it_is_the_mean():
    assert "eta=0" in str(registry.build("er-prm", claim.versus_settings).reward)
    assert [s.steps for s in soft_best(shares(), eta=0.0)([[batch_of([[("rdd", {})]]).rows[0][0]]], Run(policy=None))[0]] == [
        ((1, 0.25), (2, 1.0))
    ]
