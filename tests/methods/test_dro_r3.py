"""DRO: tokens of the reference count by how much their log-probs vary over the group's chains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.rewards.reference import _reflections, reasoning_reflection

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


def test_the_filter_goes_by_the_reward_itself():
    recipe = registry.build("dro_r3", {"share": 0.25})
    assert recipe.rollout.settings["by"] == recipe.reward
    assert recipe.rollout.settings["share"] == 0.25
