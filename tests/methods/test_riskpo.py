"""RiskPO: low and middle quantiles of what bundles of questions earn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome

from rewardlab.core import Outputs, Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.riskpo import MEMORY, bundles, by_bundle, mixed_value_at_risk, riskpo


def batch(*groups: list[float | None], tokens: int = 1):
    return batch_of([[("r" + "d" * tokens, {"a": outcome(value)}) for value in group] for group in groups])


def credits(made, run, **settings) -> list[float]:
    found = by_bundle(**settings)(made.reward, made, run)
    assert not found[~made.mask].any()
    return found[:, 1].tolist()


def run_with(low: float, high: float, step: int = 3) -> Run:
    return Run(policy=None, step=step, memory={MEMORY: {"step": step - 1, "before": None, "now": [low, high]}})


def test_what_a_bundle_earns_by_the_released_formula():
    # q = 2 and 4 at levels .2 and .8:  g = [(R - 2)+ - (R - 4)+ - 2] / .6,  h = -(2 - R)+ / .2,  (1.5 h + g) / 2.5
    #   R = 5: g = 0          R = 3: g = -1/.6          R = 1: g = -2/.6, h = -5
    found = mixed_value_at_risk(torch.tensor([5.0, 3.0, 1.0]), 2.0, 4.0, (0.2, 0.8), 1.5)
    assert found.tolist() == pytest.approx([0, -1 / 0.6 / 2.5, (-7.5 - 2 / 0.6) / 2.5])


def test_without_the_constant_the_lower_quantile_earns_nothing():
    #   R = 5: g = 2/.6          R = 3: g = 1/.6          R = 1: g = 0, h = -5.  They are q_b - q_a = 2/.6/2.5 above those before
    found = mixed_value_at_risk(torch.tensor([5.0, 3.0, 1.0]), 2.0, 4.0, (0.2, 0.8), 1.5, shifted=False)
    assert found.tolist() == pytest.approx([2 / 0.6 / 2.5, 1 / 0.6 / 2.5, -3.0])
    # of two bundles of one question, with R = 1 and 0 and quantiles 0 and 1: the better one gains, over both deviations
    assert credits(batch([1, 0]), run_with(0.0, 1.0), size=1, low=0.1, high=0.9, w=0.0, shifted=False) == pytest.approx(
        [1.25 / 0.5, 0], rel=1e-4
    )


def test_replies_are_bundled_by_their_place_and_those_beyond_the_shortest_group_are_left():
    made = batch([1, 0, 1], [0, 0], [1, 1])
    assert [table.tolist() for table in bundles(made, 2)] == [[[0, 3], [1, 4]], [[5], [6]]]


def test_a_question_that_is_never_solved_is_paid_by_its_bundle():
    # one bundle of two questions, of which the second is never solved
    made, run = batch([1, 0], [0, 0], tokens=2), run_with(0.0, 1.0)
    # R = 1, 0;  g = (1 - 0 - 1)/.8 = 0 and (0 - 1)/.8;  h = 0:   0 and -1.25 / 2 = -.625 at w = 1
    # over the spread of R (.7071), and of each question: .7071 for the first; 1 for the second, whose rewards are equal
    found = credits(made, run, size=2, low=0.1, high=0.9, w=1.0)
    assert found == pytest.approx([0, -0.625 / 0.5, 0, -0.625 / 0.70711], rel=1e-4)


def test_bundles_that_all_earn_the_same_are_not_divided_by_nothing():
    found = credits(batch([0, 0], [0, 0]), run_with(1.0, 2.0), size=2, low=0.2, high=0.7, w=0.0)
    # R = 0 for both: g = -1/.5, over deviations that count as 1
    assert found == pytest.approx([-2.0] * 4)
    assert credits(batch([1.0]), run_with(0.0, 1.0), size=2, w=0.0) == [0.0]  # a single reply, a bundle of one question: R = 2


def test_a_short_bundle_is_paid_as_a_full_one():
    # the third question alone: 1 counts as 2 of 2, above the higher quantile, and 0 as 0
    found = credits(batch([1, 1], [1, 1], [1, 0]), run_with(0.0, 1.0), size=2, low=0.1, high=0.9, w=0.0)
    assert found[:5] == pytest.approx([0, 0, 0, 0, 0])
    assert found[5] == pytest.approx(-1.25 / 2**0.5 / 0.5**0.5)


def test_a_bundle_with_a_missing_verdict_teaches_nothing():
    # replies 2 of both questions: unknown. So is the spread of what is left, one reply each
    assert credits(batch([0, None], [0, 1]), run_with(0.5, 1.0), size=2, low=0.5, high=0.9, w=0.0)[1::2] == [0, 0]
    run = Run(policy=None)
    assert credits(batch([None, None]), run, size=2) == [0, 0]
    assert MEMORY not in run.memory


def test_quantiles_move_after_the_step_that_they_were_read_in():
    run, made = Run(policy=None, step=0), batch([1, 0, 1, 0], [1, 1, 0, 0])
    # R = 2, 1, 1, 0: quantiles .25 and .75 by linear interpolation
    credits(made, run, size=2, low=0.25, high=0.75)
    assert run.metrics["quantile/low"] == pytest.approx(0.75)
    assert run.metrics["quantile/high"] == pytest.approx(1.25)
    for _ in range(2):  # scored twice in a step: they move once
        run.step = 1
        credits(made, run, size=2, low=0.25, high=0.75, rate=0.4)
        assert run.metrics["quantile/low"] == pytest.approx(0.75)
    run.step = 2
    credits(made, run, size=2, low=0.25, high=0.75, rate=0.4)
    # below .75 is a quarter: .75 + .4 (.25 - .25);   below 1.25 three quarters
    assert (run.metrics["quantile/low"], run.metrics["quantile/high"]) == pytest.approx((0.75, 1.25))
    run.step = 3
    credits(batch([1, 1, 1, 1], [1, 1, 1, 1]), run, size=2, low=0.25, high=0.75, rate=0.4)
    run.step = 4
    credits(made, run, size=2, low=0.25, high=0.75, rate=0.4)
    # no bundle below either: each rises by .4 times its level
    assert (run.metrics["quantile/low"], run.metrics["quantile/high"]) == pytest.approx((0.85, 1.55))


def test_levels_in_the_wrong_order_are_refused():
    with pytest.raises(RewardlabError, match="must be below"):
        credits(batch([1, 0]), Run(policy=None), low=0.9, high=0.2)


def test_no_bundle_is_pushed_up():
    recipe, made = riskpo(size=2), batch([1, 0, 1], [0, 1, 1], [0, 0, 1])
    found = recipe.credit(made.reward, made, Run(policy=None))
    assert (found <= 0).all()
    assert (found < 0).any()


def test_sum_mean_divides_what_a_bundle_earned_by_what_each_reply_is_above_its_question():
    # questions 1, 0, 0 and 1, 1, 0 with means 1/3 and 2/3;  R = 2, 1, 0;  q = 0 and 1 at .1 and .9, w = 0: g = 1.25, 1.25, 0
    # over the spread of R, 1.   r - mean: 2/3 and 1/3, sum 1;   -1/3 and 1/3, sum 0: halves;   -1/3 and -2/3: nothing to divide
    run = run_with(0.0, 1.0)
    settings = {"size": 2, "low": 0.1, "high": 0.9, "w": 0.0, "shifted": False}
    found = credits(batch([1, 0, 0], [1, 1, 0]), run, assign="sum-mean", **settings)
    assert found == pytest.approx([1.25 * 2 / 3, 1.25 / 2, 0, 1.25 / 3, 1.25 / 2, 0], rel=1e-4)


def test_the_script_for_dapo_math_is_a_setting():
    part = riskpo(high=0.8, n=10, shifted=False, assign="sum-mean").credit
    assert (part.settings["assign"], part.settings["high"], part.settings["shifted"]) == ("sum-mean", 0.8, False)
    assert riskpo().credit.settings["assign"] == "std"


@pytest.mark.parametrize(("ratio", "loss"), [(2.0, 2.0), (3.5, 3.0), (12.0, 3.0), (0.5, 0.8)])
def test_no_token_loses_more_than_three_times_what_its_bundle_did(ratio, loss):
    """Bundles earn 0 at most, and below 0 the clipped ratio alone grows with the ratio, without a bound."""
    made = batch([1.0])
    made = replace(made, credit=torch.full_like(made.reward, -1.0), old=torch.zeros_like(made.reward))
    said = Outputs(logprobs=torch.full_like(made.reward, ratio).log())
    assert riskpo().objective(said, made, Run(None))[made.mask].tolist() == pytest.approx([loss])
