"""GLoRe: a stepwise and an outcome model, which say where and whether to rewrite a draft."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.glore import chance, claim, glore
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import outcome_at_steps
from rewardlab.runs.config import RunConfig
from rewardlab.util.outputs import values


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


@pytest.fixture
def run():
    policy = untrained(hidden=32, layers=1)
    models = {name: policy.copy(name, value_head=True) for name in ("sorm", "orm")}
    return Run(policy, models=models, max_new=12, seed=1, verify=even())


def test_both_models_learn_and_the_policy_does_not(run):
    task = registry.task("arithmetic", test_size=4)
    recipe = glore(n=4, continuations=2, balance=False, lr=1e-2, init="value-head").but(problems=2)
    models = {"policy": run.policy, **run.models}
    before = {name: {k: v.clone() for k, v in model.state().items()} for name, model in models.items()}
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    same = {name: all(torch.equal(v, before[name][k]) for k, v in model.state().items()) for name, model in models.items()}
    assert same == {"policy": True, "sorm": False, "orm": False}
    found = recipe.measure(task.test, run)
    assert 0 <= found["refined"] <= 1
    seen = claim.by(task.test, run)
    assert {claim.measure, claim.against, claim.fault.number, claim.judge.number} <= set(seen)


def test_what_the_two_models_learn_and_say(run):
    recipe = glore(n=3, continuations=2)
    (group,) = recipe.rollout(registry.task("arithmetic", test_size=1).test[:1], run)
    verdicts = [s.value for s in run.verdicts([group])[0]]
    (told,) = outcome_at_steps()([group], run)
    assert [s.steps for s in told] == [tuple((at, v) for at in t.steps) for t, v in zip(group, verdicts, strict=True)]
    (said,) = chance("sorm")([group], run)
    for t, score, v in zip(group, said, values(run.model("sorm"), group), strict=True):
        assert [at for at, _ in score.steps] == list(t.steps)
        assert [x for _, x in score.steps] == pytest.approx([1 / (1 + np.exp(-v[at])) for at in t.steps])
