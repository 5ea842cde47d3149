"""DRO: tokens of the reference count by how much their log-probs vary over the group's chains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.rewards.reference import _reflections, _variations, reasoning_reflection, reference_variation
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.filtered import without_lowest

LOW, HIGH = math.log(0.1), math.log(0.9)


def values(*rows, weighted: bool = True) -> list[float | None]:
    return [s.total for s in _reflections([None if r is None else np.array(r, np.float32) for r in rows], weighted)]


def test_tokens_weigh_by_their_deviation_over_the_group():
    # token 0: -1, -3: std 1;  token 1: -5, -5: std 0;  token 2: -2, -8: std 3;  weights 1/4, 0, 3/4
    assert values([-1, -5, -2], [-3, -5, -8]) == pytest.approx([-1.75, -6.75])
    assert values([-1, -5, -2], [-3, -5, -8], weighted=False) == pytest.approx([-8 / 3, -16 / 3])


def test_boilerplate_that_is_likely_after_any_chain_dilutes_nothing():
    short = values([HIGH], [LOW])
    long = values([HIGH, *[-0.2] * 50], [LOW, *[-0.2] * 50])
    assert long == pytest.approx(short)
    diluted = values([HIGH, *[-0.2] * 50], [LOW, *[-0.2] * 50], weighted=False)
    assert diluted[0] - diluted[1] == pytest.approx((HIGH - LOW) / 51)


def test_one_reply_or_chains_that_make_no_difference_earn_nothing():
    assert values([-1, -2]) == [0.0]
    assert values([-1, -2], [-1, -2], [-1, -2]) == [0.0, 0.0, 0.0]


def test_missing_replies_take_part_in_no_deviation_and_other_tokens_get_no_verdict():
    assert values(None, [-1, -5, -2], None, [-3, -5, -8]) == [None, pytest.approx(-1.75), None, pytest.approx(-6.75)]
    assert values([-1, -2], [-1, -2, -3], [-1, -4]) == [pytest.approx(-2.0), None, pytest.approx(-4.0)]
    assert values(None, None) == [None, None]
    assert values([]) == [None]


def test_a_problem_without_a_reference_gets_no_verdict():
    row = Trajectory(ask("Q", None), (Turn("policy", np.arange(2), text="well\nAnswer: 1"),), "end")
    assert reasoning_reflection()([[row, row]], Run(policy=None))[0][0].missing


def test_a_problem_varies_as_much_as_the_token_that_varies_most():
    # stds 1, 0, 3; a reply without the answer, or one that is cut into other tokens, has none
    rows = [np.array(r, np.float32) for r in ([-1, -5, -2], [-3, -5, -8], [-1, -2])]
    assert [s.total for s in _variations([None, *rows])] == [None, pytest.approx(3.0), pytest.approx(3.0), None]
    assert [s.total for s in _variations(rows[:1])] == [0.0]
    assert [s.total for s in _variations([None])] == [None]


@rollout
def answered_in_turn(problems, run):
    return [[Trajectory(p, (Turn("policy", np.arange(2), text="well"),), "end")] * 2 for p in problems]


@reward(over="groups")
def worth(groups, run):
    return [[None if t.problem.answer == "?" else float(t.problem.answer) for t in group] for group in groups]


@pytest.mark.parametrize(
    ("answers", "drop", "kept"),
    [("3125", 0.5, "35"), ("3125", 0.24, "3125"), ("2222", 0.5, "22"), ("?1?0", 0.5, "10"), ("1", 1.0, "1"), ("??", 0.0, "??")],
)
def test_the_groups_that_vary_least_are_dropped(answers, drop, kept):
    groups = without_lowest(inner=answered_in_turn(), by=worth(), drop=drop)([ask("Q", a) for a in answers], Run(policy=None))
    assert "".join(g[0].problem.answer for g in groups) == kept


def test_the_filter_goes_by_the_variation_of_the_same_answers():
    recipe = registry.build("dro_r3", {"drop": 0.5, "mark": "So:"})
    assert recipe.rollout.settings["by"] == reference_variation(mark="So:")
    assert recipe.rollout.settings["drop"] == 0.5
    assert recipe.reward == reasoning_reflection(mark="So:")
