"""Calibrated PRM with IAS: quantiles of success from the prompt on, and as many samples as the low one asks for."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.calibrated_prm_ias import (
    adaptive_best_of_n,
    calibrated_prm_ias,
    claim,
    samples_for,
    share_of_group,
    value_from_prompt,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

RUN = Run(policy=None)

# a group with one right reply of three, and one of which nobody knows; row 0: step .25, then right; rows 1 and 2: wrong at the end
GROUPS = [
    [("rrddd", {"x": steps({2: 0.25, 4: 1.0})}), ("rrd", {"x": steps({2: 0.0})}), ("rrdd", {"x": steps({2: 0.5, 3: 0.0})})],
    [("rdd", {"x": steps({})})],
]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def losses(calibrated: bool, name: str = "prm") -> list[float]:
    recipe = next(x.recipe for x in calibrated_prm_ias(low=0.2, calibrated=calibrated).also if x.name == name)
    batch = batch_of(GROUPS)
    batch.credit = recipe.credit(batch.reward, batch, RUN)
    value = torch.full(batch.mask.shape, 9.0)
    # of row 0: the prompt ends at 1
    value[0, 1], value[0, 2], value[0, 4] = -1.0, 0.5, 2.0
    value[1, 1], value[1, 2] = 1.0, -0.5
    return recipe.objective(Outputs(value=value), batch, RUN).tolist()


def test_the_prompt_is_labelled_by_its_replies_and_missed_shares_cost_by_their_side():
    def pinball(label: float, q: float, tau: float) -> float:
        off = label - sigmoid(q)
        return tau * off if off >= 0 else (tau - 1) * off

    for name, tau in (("prm", 0.5), ("low", 0.2)):
        found = losses(True, name)
        assert found[0] == pytest.approx((pinball(1 / 3, -1, tau) + pinball(0.25, 0.5, tau) + pinball(1.0, 2.0, tau)) / 3)
        assert found[1] == pytest.approx((pinball(1 / 3, 1, tau) + pinball(0.0, -0.5, tau)) / 2)
        assert found[3] == 0.0  # nothing is known of it


def test_a_classifier_is_told_that_a_prompt_is_right_if_one_reply_is():
    # hard shares at the steps are the reward's part; here only the prompt's is, and cross-entropy rounds
    by_hand = (-math.log(sigmoid(1)) - math.log(1 - sigmoid(-0.5))) / 2
    assert losses(False)[1] == pytest.approx(by_hand)
    batch = batch_of(GROUPS)
    assert share_of_group()(batch.reward, batch, RUN)[:, 0].tolist() == pytest.approx([1 / 3] * 3 + [-1])
    assert share_of_group(hard=True)(batch.reward, batch, RUN)[:, 0].tolist() == [1.0] * 3 + [-1.0]


def test_a_row_in_which_nothing_was_decided_teaches_nothing():
    batch = batch_of([[("r", {"x": steps({})}), ("rd", {"x": steps({1: 1.0})})]])
    batch.credit = share_of_group()(batch.reward, batch, RUN)
    loss = value_from_prompt(tau=0.5)(Outputs(value=torch.zeros(2, 2)), batch, RUN)
    assert loss[1].item() == pytest.approx(0.25)  # both labels are 1, and sigmoid(0) is 1/2


def released(p: float, q: float = 0.99, eps: float = 1e-4) -> int:
    """`compute_N_IAS` of the released code."""
    p = max(eps, min(p, 1.0 - eps))
    return math.ceil(math.log(1 - q) / math.log(1 - p))


def test_how_many_samples():
    # 1 - .5^7 = .992
    assert samples_for(0.5, 0.99, 64) == 7
    assert [samples_for(p, 0.99, 10**6) for p in (0.0, 0.05, 0.3, 0.9, 1.0)] == [released(p) for p in (0.0, 0.05, 0.3, 0.9, 1.0)]
    assert samples_for(0.01, 0.99, 8) == 8


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


@reward
def length(trajectory):
    return float(len(trajectory.reply))


def test_the_budget_follows_the_forecast_and_both_choices_see_the_same_samples():
    task, policy = registry.task("arithmetic", test_size=6), untrained(hidden=32, layers=1)
    model = policy.copy("low", value_head=True)
    run = Run(policy, models={"low": model}, max_new=8, seed=1, verify=even())

    def found(by, **settings):
        return adaptive_best_of_n(by=by, model="low", n=4, **settings)(list(task.test), run.detached())

    # a head of zeros foretells 1/2 everywhere: log(1 - C) / log(1/2) samples, at most 4
    assert found(length())["samples"] == 4
    assert found(length())["adaptive"] == found(length())["fixed"]
    # all of them get the most there is; with C = .7 none does
    assert found(length())["capped"] == 1.0
    assert found(length(), confidence=0.7)["capped"] == 0.0
    two = found(even(), confidence=0.7)
    assert two["samples"] == 2
    assert two["adaptive"] == two["even"] <= two["fixed"] == pytest.approx(found(even())["fixed"])
    assert two["overestimate"] == pytest.approx(0.5 - two["pass@1"])
    assert two["brier"] >= two["overestimate"] ** 2
    assert two["by_auc"] == 1.0 or math.isnan(two["by_auc"])


def test_forecasts_between_a_twentieth_and_a_half_get_numbers_of_their_own():
    most = calibrated_prm_ias().measure.settings["n"]
    # log .01 / log(1 - p) = 13 for .3, 21 for .2, 44 for .1, and more than any has for .05
    assert [samples_for(p, 0.99, most) for p in (0.5, 0.3, 0.2, 0.1, 0.05)] == [7, 13, 21, 44, 64]


def test_two_models_learn_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=2)
    recipe = calibrated_prm_ias(n=2, continuations=2, choose=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    models = {name: policy.copy(name, value_head=True) for name in ("prm", "low")}
    run = Run(policy, models=models, max_new=6, seed=1, verify=even())
    ops = Ops(recipe, run, task, RunConfig(steps=2))
    for _ in range(2):
        standard_loop(recipe, run, ops)
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, models["low"].state()[k]) for k, v in models["prm"].state().items())
    assert 1 <= recipe.measure(task.test, run)["samples"] <= 2


def test_the_classifier_has_one_number_for_both():
    recipe = registry.build("calibrated-prm-ias", claim.versus_settings)
    assert [x.name for x in recipe.also] == ["prm"]
    assert recipe.measure.settings["low"] == "prm"
    assert "threshold" in str(recipe.reward)
