"""Fin-PRM: labels of steps and of the reply from several annotators, and the model that learns them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from rows import row_of

from rewardlab import registry
from rewardlab.core import Run, Score
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.fin_prm import check, fin_prm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rewards.weighed_steps import weighed_steps
from rewardlab.runs.config import RunConfig


def says(*steps, value=None):
    """An annotator of the steps at positions 1, 2, 3; None: it says nothing of that step."""

    @reward(steps=True)
    def told(trajectory):
        known = [(at, x) for at, x in zip((1, 2, 3), steps, strict=False) if x is not None]
        return known or Score(value)

    return told()


def labels_of(weights, whole=None, **of):
    t = replace(row_of("rddd"), steps=(1, 2, 3))
    part = weighed_steps(inner=of, weights=weights, whole=whole)
    (score,) = part([[t]], Run(None))[0]
    batch = collate([[t]], [[score]], torch.device("cpu"))
    return [batch.reward[0, at].item() if batch.rewarded[0, at] else None for at in (1, 2, 3)]


def test_annotators_that_say_nothing_do_not_count():
    # step 1: (1 * .2 + 2 * 1) / 3 = .73; step 2: the second says nothing, .2 alone; step 3: (.5 + 2 * 0) / 3 = .17
    assert labels_of((1.0, 2.0), a=says(0.2, 0.2, 0.5), b=says(1.0, None, 0.0)) == [1.0, 0.0, 0.0]
    # equal weights: .6; .2; .25
    assert labels_of((1.0, 1.0), a=says(0.2, 0.2, 0.5), b=says(1.0, None, 0.0)) == [1.0, 0.0, 0.0]
    # without the knowledge the first step is wrong, and half is enough for the third
    assert labels_of((1.0,), a=says(0.2, 0.2, 0.5)) == [0.0, 0.0, 1.0]
    assert labels_of((1.0,), a=says(None, 0.5, None)) == [None, 1.0, None]
    with pytest.raises(RewardlabError, match="as many weights"):
        labels_of((1.0, 2.0), a=says(1.0))


def test_the_last_label_is_that_of_the_whole_reply():
    steps = says(1.0, 0.0, 1.0)
    # right with a fifth of the knowledge: (1 + .2) / 2; with none, or wrong with all of it: 1/2, which is not above 1/2
    for right, used, label in (
        (1.0, 0.2, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.5, 0.0), (1.0, None, 1.0), (0.0, None, 0.0), (None, None, None),
    ):  # fmt: skip
        whole = {"outcome": says(value=right), "coverage": says(value=used)}
        assert labels_of((1.0,), whole, a=steps) == [1.0, 0.0, label]


def test_an_annotator_of_weight_0_is_left_out():
    names = lambda recipe: list(recipe.also[-1].recipe.reward.settings["inner"])  # noqa: E731
    assert names(fin_prm()) == ["importance", "quality", "accuracy"]
    without = fin_prm(quality=0.0)
    assert names(without) == ["importance", "accuracy"]
    assert [x.name for x in without.also] == ["prm"]


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("recalled", test_size=2)
    recipe = fin_prm(n=2, continuations=1, quality=0.0, choose=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=8, seed=1, verify=says(value=0.0))
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    assert 0 <= recipe.measure(task.test, run)["reranked"] <= 1


def test_what_its_claim_measures():
    task = registry.task("recalled", written=0.6, test_size=3)
    assert len(task.test[0].meta["passages"]) < 20 * 6
    run = Run(untrained(hidden=32, layers=1), max_new=6, seed=1, verify=registry.part("reward", task.verifier))
    assert {check.measure, check.against, check.fault.number} <= set(check.by(task.test, run))


@pytest.mark.parametrize("method", ["fin_prm", "reasonflux_prm"])
def test_the_judge_says_of_every_step_whether_it_is_right(method):
    """Asked for the first wrong one alone, it would leave the steps after that without a word of it."""
    (judge,) = [part for part in registry.build(method).also[-1].recipe.reward.walk() if part.name == "judged_steps"]
    assert judge.settings["form"] == "each"
