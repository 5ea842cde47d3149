"""Rank statistics against numbers worked out by hand, with ties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.scoreboard.correlation import auc, kendall, pearson, ranks, spearman


def test_equal_numbers_share_the_mean_of_their_ranks():
    assert ranks(np.array([10.0, 20.0, 20.0, 5.0])).tolist() == [2.0, 3.5, 3.5, 1.0]


def test_correlations_with_a_tie():
    x, y = np.array([1.0, 2.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0])
    # ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: covariance 4.5, squares 4.5 and 5
    assert spearman(x, y) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    # of six pairs five in order, none against, one tied in x
    assert kendall(x, y) == pytest.approx(5 / math.sqrt(5 * 6))
    assert math.isnan(pearson(x, np.ones(4)))
    assert math.isnan(kendall(x, np.ones(4)))


def test_the_area_under_the_curve_counts_ties_half():
    # right 2, 1; wrong 1, 0: 2 > 1, 2 > 0, 1 = 1, 1 > 0
    assert auc(np.array([2.0, 1.0, 1.0, 0.0]), np.array([1, 1, 0, 0])) == pytest.approx(3.5 / 4)
    assert math.isnan(auc(np.array([1.0, 2.0]), np.array([1, 1])))
