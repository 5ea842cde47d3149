"""The linear scorer: what it reads of a step, and that it learns from steps and from whole solutions."""

import numpy as np
import pytest

from rewardlab.prm.linear import SIZE, LinearScorer, dense, features, of_steps


def test_a_number_is_told_by_where_it_stood_before():
    one, other = (set(features("7 pens at 3", f"so {n}").tolist()) for n in (3, 7))
    new = set(features("7 pens at 3", "so 21").tolist())
    assert len(one ^ other) == len(one ^ new) == 2
    # the same words about other numbers are the same
    assert set(features("8 pens at 5", "so 5").tolist()) == one


def test_the_linear_scorer_learns_single_steps_and_whole_solutions():
    steps = [of_steps("q", (f"the {a} is {b}",)) for a in ("sky", "sea") for b in ("blue", "red")]
    scorer = LinearScorer.fit(steps, [1, 0, 1, 0])
    assert (scorer.chances(steps) > 0.5).tolist() == [True, False, True, False]
    # a solution is the sum of its steps: one red step outweighs nothing where both are red
    whole = [[*steps[0], *steps[2]], [*steps[1], *steps[3]], [*steps[0], *steps[3]]]
    chances = scorer.chances(whole)
    assert chances[0] > chances[2] > chances[1]
    with pytest.raises(ValueError, match="right and wrong"):
        LinearScorer.fit(steps, [1, 1, 1, 1])


def test_the_same_steps_give_the_same_scorer_and_a_row_is_the_sum_of_its_steps():
    steps = of_steps("q", ("one is red", "two is blue", "one is red"))
    rows, right = [[steps[0]], [steps[1]]], [1, 0]
    one, other = (LinearScorer.fit(rows, right) for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    assert dense([steps]).shape == (1, SIZE)
    assert np.array_equal(dense([steps]), dense([steps[:1]]) * 2 + dense([steps[1:2]]))
    with pytest.raises(ValueError, match="2 rows with 1 labels"):
        LinearScorer.fit(rows, right[:1])
