"""OREAL: one right and one wrong reply of several, paid by the pass rate, at the tokens that a reward model finds decisive."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run
from rewardlab.engine.rates import told
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.oreal import MODEL, by_pass_rate, decisive, oreal
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

RUN = Run(policy=None)


def paired(*rates: tuple[float, int], values=None, wrong=0.0):
    """Of each pass rate and number of replies a group: two tokens, right; three, wrong, which earn so much all the same."""
    rows = [("rdd", {"a": outcome(1.0)}), ("rddd", {"a": outcome(wrong)})]
    batch = batch_of([rows for _ in rates], {f"{MODEL}.value": values or [[0.0] * 4 for _ in rates for _ in rows]})
    seen = [{"pass_rate": p, "judged": n, "right": right} for p, n in rates for right in (True, False)]
    batch.rows = [(replace(t, problem=replace(t.problem, meta=m)), s) for (t, s), m in zip(batch.rows, seen, strict=True)]
    return batch


def test_a_hard_problem_pays_right_replies_more_and_an_easy_one_wrong_replies_by_rloo_of_all_replies():
    batch = paired((0.25, 4), (0.75, 4))
    found = by_pass_rate(eta=0.5)(batch.reward, batch, RUN)
    # leave-one-out of four: 1 - 0 = 1 and 0 - 1/3;  1 - 2/3 = 1/3 and 0 - 1
    # ten tokens in all, four of right replies and six of wrong ones: times 10/4, and times eta 10/6
    assert [float(row[1]) for row in found] == pytest.approx([2.5, -0.5 / 3 * 10 / 6, 2.5 / 3, -0.5 * 10 / 6])
    assert not found[~batch.mask].any()
    flat = by_pass_rate(eta=0.5, shaped=False)(batch.reward, batch, RUN)
    assert [float(row[1]) for row in flat] == pytest.approx([2.5, -0.5 * 10 / 6] * 2)


def test_a_reply_that_is_partly_right_is_wrong_in_every_place():
    values = [[1.0] * 4, [-1.0] * 4]
    partly, wholly = (paired((0.25, 4), values=values, wrong=wrong) for wrong in (0.5, 0.0))
    credit = oreal().credit
    assert torch.equal(credit(partly.reward, partly, RUN), credit(wholly.reward, wholly, RUN))
    assert bool((credit(partly.reward, partly, RUN)[1][partly.mask[1]] < 0).all())


def test_the_loss_is_the_sum_of_two_means_over_tokens():
    batch, recipe = paired((0.25, 4)), oreal(tokens=False, beta=0.0)
    batch.credit = recipe.credit(batch.reward, batch, RUN)
    said = torch.tensor([[0, -1.0, -2.0, 0], [0, -1.0, -2.0, -6.0]])
    loss = recipe.objective(Outputs(logprobs=said), batch, RUN) * recipe.weighting(batch)
    # right: 1 * (1 + 2)/2;   wrong: -eta/3 * (1 + 2 + 6)/3
    assert float(loss[batch.mask].sum()) == pytest.approx(1.5 - 0.5)


def test_replies_without_a_verdict_and_groups_that_are_all_alike_teach_nothing():
    batch = batch_of([[("rd", {"a": outcome(1.0)}), ("rd", {"a": outcome(1.0)}), ("rd", {"a": outcome(None)})]])
    meta = {"pass_rate": 1.0, "judged": 2}
    seen = [{**meta, "right": right} for right in (True, True, False)]
    batch.rows = [(replace(t, problem=replace(t.problem, meta=m)), s) for (t, s), m in zip(batch.rows, seen, strict=True)]
    assert not by_pass_rate()(batch.reward, batch, RUN).any()


def test_without_a_pass_rate_it_says_what_is_missing():
    batch = batch_of([[("rd", {"a": outcome(1.0)})]])
    with pytest.raises(RewardlabError, match="right_wrong_pair"):
        by_pass_rate()(batch.reward, batch, RUN)


def test_weights_follow_the_mean_score_so_far():
    # the released code: clamp((p - 1/2) / (1/2), 0, 1) of the sigmoid p of the cumulative mean, 1 - p for wrong replies
    scores = torch.tensor([[9.0, 2.0, 0.0, -5.0], [9.0, 2.0, -4.0, -4.0]])
    mask = torch.tensor([[False, True, True, True], [False, True, True, True]])
    p = [1 / (1 + math.exp(-m)) for m in (2, 1, -1)], [1 / (1 + math.exp(-m)) for m in (2, -1, -2)]
    found = decisive(scores, mask, torch.tensor([True, False]))
    assert found[0, 1:].tolist() == pytest.approx([(p[0][0] - 0.5) / 0.5, (p[0][1] - 0.5) / 0.5, 0])
    assert found[1, 1:].tolist() == pytest.approx([0, (0.5 - p[1][1]) / 0.5, (0.5 - p[1][2]) / 0.5])


def test_a_score_is_read_before_its_token():
    # the value at the end of the prompt weighs the first token; that of the last token weighs nothing
    batch = paired((0.5, 2), values=[[2.0, 2.0, -99.0, 0.0], [-2.0, -2.0, -2.0, 99.0]])
    found = oreal(eta=1.0).credit(batch.reward, batch, RUN)
    weight = 2 / (1 + math.exp(-2)) - 1
    # (1 - 1/2) 2/1 = 1 over 2 of 5 tokens, and -1 over 3 of 5
    assert found[0, 1:3].tolist() == pytest.approx([weight * 2.5] * 2)
    assert found[1, 1:].tolist() == pytest.approx([-weight * 5 / 3] * 3)


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in: whether the number of the last token is odd."""
    return float(trajectory.ids[-1] % 2)


def ops_of(**settings) -> Ops:
    recipe = registry.build("oreal", {"n": 4, "problems": 3, "lr": 1e-2, **settings})
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, policy.copy("reference"), {MODEL: policy.copy(MODEL, value_head=True)}, max_new=3, seed=1, verify=ends_odd())
    recipe = recipe.but(reward=ends_odd().named("correct"))
    return Ops(recipe, run, registry.task("arithmetic", test_size=2), RunConfig(steps=9))


@pytest.mark.parametrize(("settings", "rate"), [({}, 4e-3), ({"rm_lr": 0.02}, 0.02), ({"freeze": 0}, 4e-3)])
def test_the_reward_model_learns_four_times_as_fast_as_the_policy(settings, rate):
    ops = ops_of(lr=1e-3, **settings)
    ops.recipe.loop(ops.recipe, ops.run, ops)
    assert ops.run.metrics[f"{MODEL}/lr"] == pytest.approx(rate)
    recipe = registry.build("oreal", {"lr": 1e-3, **settings})
    assert told(recipe, ops.run.policy, {})[MODEL].startswith(f"lr {rate:g}:")


def test_the_policy_waits_while_the_reward_model_learns_alone():
    ops = ops_of(freeze=1)
    changed = []
    for _ in range(2):
        before = {name: value.clone() for name, value in ops.run.policy.state().items()}
        ops.run.metrics = {}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1
        changed.append(any(not torch.equal(value, before[name]) for name, value in ops.run.policy.state().items()))
        assert ops.run.metrics[f"{MODEL}/loss"] > 0
        assert {len(group) for group in ops.step_data.groups} == {2}
    # the first scores are all 0, so that no token weighs anything until the model has learnt
    assert changed == [False, True]
