"""The strength of preferences by several scorers, and what becomes of pairs by it."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.data.strength import by_agreement, by_strength, flipped, shares, strengths, weakest
from rewardlab.errors import RewardlabError


def test_strength_is_the_mean_of_the_differences_and_its_spread_divides_by_the_number_of_scorers():
    first, second = strengths(np.array([[1.0, -2.0], [3.0, -2.0]]))
    assert first == pytest.approx((2.0, 1.0))
    assert second == pytest.approx((-2.0, 0.0))


@pytest.mark.parametrize("gaps", [np.zeros((0, 3)), np.zeros(3)])
def test_strengths_without_a_scorer_are_refused(gaps):
    with pytest.raises(RewardlabError, match="at least one scorer"):
        strengths(gaps)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_not_finite_is_named_by_scorer_and_pair(value):
    with pytest.raises(RewardlabError, match="scorer 2 gave pair 3"):
        strengths(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, value]]))


def test_the_weakest_are_so_large_a_share_and_ties_go_to_the_earlier():
    assert weakest([0.5, -1.0, -1.0, 2.0, -1.0], 0.4) == {1, 2}
    # 0.29 * 100 is below 29 in floating point
    assert weakest([float(i) for i in range(100)], 0.29) == set(range(29))
    assert weakest([1.0, 2.0], 0.0) == set()


def test_only_pairs_below_0_are_flipped_and_the_rest_of_them_softened():
    means = [-3.0, 2.0, -0.1, 0.0, -2.0]
    assert by_strength(means, 0.4, soften=True) == ["flipped", "kept", "softened", "kept", "flipped"]
    assert by_strength(means, 0.4, soften=False) == ["flipped", "kept", "kept", "kept", "flipped"]
    # a share that reaches beyond 0 flips no pair that the scorers agree with
    assert by_strength(means, 1.0, soften=True) == ["flipped", "kept", "flipped", "kept", "flipped"]


def test_agreement_keeps_flips_or_drops():
    gaps = np.array([[1.0, -1.0, 1.0, 0.0, -2.0], [2.0, -0.5, -1.0, 1.0, 0.0]])
    assert by_agreement(gaps) == ["kept", "flipped", "dropped", "dropped", "dropped"]


def test_flipping_moves_all_that_belongs_to_either_reply():
    row = {
        "prompt": "Why?", "chosen": "a", "rejected": "b", "chosen_score": 3, "rejected_score": 1, "gap": 2, "qualities": [0.2, 0.9],
        "rejected_paraphrase": "B", "gold": True, "chosenness": 1,
    }  # fmt: skip
    assert flipped(row) == {
        "prompt": "Why?", "chosen": "b", "rejected": "a", "chosen_score": 1, "rejected_score": 3, "gap": -2,
        "qualities": [0.9, 0.2], "chosen_paraphrase": "B", "gold": True, "chosenness": 1,
    }  # fmt: skip
    assert flipped(flipped(row)) == row


def test_shares_name_what_there_is():
    assert shares(["kept", "flipped", "kept", "dropped"]) == {"kept": 0.5, "flipped": 0.25, "dropped": 0.25}
