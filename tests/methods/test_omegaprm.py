"""OmegaPRM: a model of the shares in trees of halved replies, and a vote by it."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Term, Trajectory, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.omegaprm import check, omegaprm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.model import step_score
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def test_the_loss_by_hand():
    batch = batch_of([[("rdddd", {"paid": Term(None, ((1, 0.75), (3, 0.0)))})]])
    (prm,) = omegaprm().also
    loss = prm.recipe.objective(Outputs(value=torch.tensor([[9.0, 2.0, 9.0, -1.0, 9.0]])), batch, Run(policy=None))
    p, q = (1 / (1 + math.exp(-x)) for x in (2.0, -1.0))
    assert loss.item() == pytest.approx(-(0.75 * math.log(p) + 0.25 * math.log(1 - p) + math.log(1 - q)) / 2, abs=1e-6)


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=3)
    recipe = omegaprm(n=4, searches=2, choose=2, lr=1e-2, init="value-head").but(problems=3)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=24, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    assert 0 <= recipe.measure(task.test, run)["voted"] <= 1


def test_a_reply_votes_with_the_product_of_the_chances_of_its_steps():
    policy, by = untrained(hidden=32, layers=1), omegaprm().measure.settings["by"]
    prm = policy.copy("prm", value_head=True)
    with torch.no_grad():
        prm.model.value_head.normal_(generator=torch.Generator().manual_seed(0))
    (row,) = policy.write(policy.read([Trajectory(ask("1+1=?"))], [ask("1+1=?").prompt]), ["1+1=3\n2+2=5\n3"])
    run = Run(policy, models={"prm": prm})
    said = [v for _, v in step_score(model="prm")([[row]], run)[0][0].steps]
    assert len(set(said)) == 3
    assert by([[row]], run)[0][0].total == pytest.approx(math.prod(1 / (1 + math.exp(-v)) for v in said), rel=1e-4)


def test_what_its_claim_measures():
    task = registry.task("arithmetic", test_size=3)
    found = check.by(task.test, Run(untrained(hidden=32, layers=1), max_new=24, seed=1, verify=even()))
    assert {check.measure, check.against, check.fault.number, check.judge.number} <= set(found)
    # halving samples what it needs while the tree grows
    assert found["sampled"] >= 3 * 8
    assert found["completions.tree"] == 0


def test_on_both_sides_of_its_claim_a_step_is_wrong_if_no_continuation_is_right():
    sides = check.by.settings["annotators"]
    assert set(sides) == {"tree", "every"}
    for side in sides.values():
        said = [side.function(share, **side.settings) for share in (0.0, 1 / 8, 1.0)]
        assert [label < check.by.settings["threshold"] for label in said] == [True, False, False]
