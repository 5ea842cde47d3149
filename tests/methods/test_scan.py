"""SCAN: a process reward model of labels that are relative to how sure the policy is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Term, Trajectory, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.scan import check, scan
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.text.splitters import mark


def test_the_loss_by_hand():
    """A wrong reply whose second step, just before the error, is continued rightly half as often as the problem is solved."""
    batch = batch_of([[("rdddd", {"l": Term(None, ((1, 1.0), (2, 0.5), (3, 0.0)))}), ("rd", {"l": Term(None, ())})]])
    value = torch.tensor([[9.0, 1.0, 2.0, -1.0, 9.0], [9.0] * 5])
    (prm,) = scan().also
    loss = prm.recipe.objective(Outputs(value=value), batch, Run(policy=None))
    p, q, r = (1 / (1 + math.exp(-x)) for x in (1.0, 2.0, -1.0))
    wanted = -(math.log(p) + 0.5 * math.log(q) + 0.5 * math.log(1 - q) + math.log(1 - r)) / 3
    assert loss.tolist() == pytest.approx([wanted, 0.0], abs=1e-6)


def test_a_reply_is_as_good_as_its_worst_step(monkeypatch):
    policy = untrained(0, hidden=32, layers=1)
    begun = policy.read([Trajectory(ask("?"))], [ask("?").prompt])
    rows = [mark(t, "newline", policy.pieces) for t in policy.write(begun * 2, ["a\nb\nc"] * 2)]
    # an error in the second step of the first reply, whose last step the model, which had no labels there, likes
    said = {0: [2.0, -3.0, 5.0], 1: [1.0, 1.0, 1.0]}

    def values(model, found):
        table = [np.zeros(len(t)) for t in found]
        for i, (t, v) in enumerate(zip(found, table, strict=True)):
            v[list(t.steps)] = said[i]
        return table

    monkeypatch.setattr("rewardlab.rewards.model.values", values)
    by = scan().measure.settings["by"]
    assert [s.total for s in by([rows], Run(policy, models={"prm": policy}))[0]] == [-3.0, 1.0]


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=2)
    recipe = scan(n=4, continuations=2, least=0.25, choose=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())


def test_what_its_claim_measures():
    task = registry.task("arithmetic", test_size=8)
    run = Run(untrained(hidden=32, layers=1), max_new=6, seed=1, verify=even())
    found = check.by(task.test, run)
    assert {check.measure, check.against, check.fault.number, check.judge.number} <= set(found)
    assert found["completions.scan"] < found["completions.plain"]
