"""Fronts, hypervolume and expected utility, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.util.pareto import expected_utility, front, hypervolume, simplex

ORIGIN = np.zeros(2)


def test_the_front_leaves_out_what_is_dominated_and_keeps_what_is_equal_once():
    points = np.array([[1, 3], [2, 2], [2, 1], [1, 3], [3, 0], [0, 0]], float)
    # (2, 1) is no better than (2, 2) anywhere; (1, 3) stands twice
    assert front(points).tolist() == [[1, 3], [2, 2], [3, 0]]


def test_hypervolume_of_a_staircase():
    # unit columns of height 3, 2 and 1
    assert hypervolume(np.array([[1, 3], [2, 2], [3, 1]], float), ORIGIN) == pytest.approx(6)
    # what is dominated, or no better than the reference in one objective, adds nothing
    assert hypervolume(np.array([[1, 3], [2, 2], [3, 1], [1, 1], [9, 0]], float), ORIGIN) == pytest.approx(6)
    assert hypervolume(np.array([[9, 0], [0, 9]], float), ORIGIN) == 0
    assert hypervolume(np.array([[9, 0]], float), np.array([-1.0, -1.0])) == pytest.approx(10)


def test_hypervolume_of_boxes_in_three_dimensions():
    # 2 * 2 * 1 and 1 * 1 * 3 overlap in 1 * 1 * 1
    assert hypervolume(np.array([[2, 2, 1], [1, 1, 3]], float), np.zeros(3)) == pytest.approx(4 + 3 - 1)


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_hypervolume_is_the_share_of_samples_below_a_point(objectives):
    rng = np.random.default_rng(objectives)
    points = rng.random((6, objectives))
    below = (rng.random((200_000, 1, objectives)) < points).all(-1).any(1).mean()
    assert hypervolume(points, np.zeros(objectives)) == pytest.approx(below, abs=0.005)


def test_weights_of_the_simplex():
    assert simplex(2, 2).tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    # (4 + 2) over 2 ways to put four steps into three objectives
    assert len(simplex(3, 4)) == 15
    assert simplex(3, 4).sum(1) == pytest.approx(1)


def test_expected_utility_is_that_of_the_best_point_for_each_weight():
    points = np.array([[4, 0], [1, 1]], float)
    # 4, max(2, 1) and max(0, 1)
    assert expected_utility(points, simplex(2, 2)) == pytest.approx((4 + 2 + 1) / 3)
