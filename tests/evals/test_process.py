"""Figures of judged steps, against tables small enough to work out by hand."""

from __future__ import annotations

import pytest

from rewardlab.data.solutions import Solution
from rewardlab.evals import process
from rewardlab.evals.process import Judged


def judged(labels, chances, **meta):
    return Judged(Solution("p", tuple("s" for _ in labels), tuple(labels), meta=meta), tuple(chances))


FLAWED_FOUND = judged([1, 0, None], [0.9, 0.2, 0.9])
FLAWED_EARLY = judged([1, 0, None], [0.4, 0.2, 0.1])
FLAWED_MISSED = judged([1, 0, None], [0.9, 0.6, 0.1])
RIGHT_FOUND = judged([1, 1], [0.8, 0.7])
RIGHT_DOUBTED = judged([1, 1], [0.8, 0.5])
FIVE = [FLAWED_FOUND, FLAWED_EARLY, FLAWED_MISSED, RIGHT_FOUND, RIGHT_DOUBTED]


def test_first_errors_as_processbench_counts_them():
    # of three flawed ones the first is located; of two right ones the first is left alone: a chance of just 1/2 is no yes
    assert process.first_errors(FIVE) == pytest.approx(
        {"n_error": 3, "n_correct": 2, "error_accuracy": 1 / 3, "correct_accuracy": 1 / 2, "f1": 2 / 5}
    )
    # without one of the two kinds there is no mean of both
    assert process.first_errors(FIVE[:3]) == pytest.approx({"n_error": 3, "n_correct": 0, "error_accuracy": 1 / 3})
    # where the first error is, nobody knows
    assert process.first_errors([judged([None, 0], [0.9, 0.1]), judged([1, None], [0.9, 0.9])])["n_error"] == 0


def test_the_threshold_with_the_best_f1():
    rows = [judged([1, 0], [0.3, 0.1]), judged([1, 1], [0.4, 0.35])]
    assert process.first_errors(rows)["f1"] == 0
    at = process.best_threshold(rows)
    assert 0.1 <= at < 0.3
    assert process.first_errors(rows, at)["f1"] == 1


def test_steps_and_their_calibration():
    rows = [judged([1, 0.25], [0.9, 0.6]), judged([0.5, None], [0.3, 0.0])]
    # three labelled steps: 0.9 right, 0.6 wrong, 0.3 right
    expected = {
        "n": 3,
        "right": 2 / 3,
        "auc": 0.5,
        "accuracy": 1 / 3,
        "brier": (0.01 + 0.36 + 0.49) / 3,
        "ece": (0.1 + 0.6 + 0.7) / 3,
    }
    assert process.steps(rows) == pytest.approx(expected)
    assert process.reliability(rows) == [
        {"from": 0.3, "n": 1, "chance": 0.3, "right": 1.0}, {"from": 0.6, "n": 1, "chance": 0.6, "right": 0.0},
        {"from": 0.9, "n": 1, "chance": 0.9, "right": 1.0},
    ]  # fmt: skip
    places = process.by_position(rows, last=2)
    assert [(row["step"], row["n"], row["accuracy"]) for row in places] == [("1", 2, 0.5), ("2+", 1, 0.0)]
    lengths = process.by_length([*FIVE, judged([1] * 5, [0.9] * 5)])
    assert [(row["steps in it"], row["n_error"], row["n_correct"]) for row in lengths] == [("up to 4", 3, 2), ("up to 8", 0, 1)]


def test_prm_scores_of_categories():
    rows = [
        # said right, is right: 2; said right, is wrong: 1; said wrong, is wrong: 1; said wrong, is right: 1
        judged([1, 0, 0, 1, 1], [0.9, 0.8, 0.2, 0.1, 0.7], classification="circular"),
        judged([1, 0], [0.9, 0.1], classification="redundency"),
        judged([1, 0], [0.9, 0.9], classification="deception"),
        judged([1, 1], [0.1, 0.1], classification="original"),
    ]
    found = process.prmbench(rows)
    circular = found["categories"]["circular"]
    # F1 of right steps: 2 * 2 / (2 * 2 + 1 + 1); of wrong ones: 2 * 1 / (2 * 1 + 1 + 1)
    assert circular == pytest.approx(
        {"n": 1, "prm_score": (2 / 3 + 1 / 2) / 2, "f1": 2 / 3, "negative_f1": 1 / 2, "first_error": 0.0}
    )
    assert found["groups"] == pytest.approx({"simplicity": (1 + 7 / 12) / 2, "sensitivity": (2 / 3 + 0) / 2})
    # all nine steps together: right 4 of 6 said and 5 that are, wrong 2 of 3 said and 4 that are
    assert (found["n"], found["f1"], found["negative_f1"]) == pytest.approx((3, 8 / 11, 4 / 7))
    assert found["first_error"] == pytest.approx(1 / 3)
    assert "prmbench" in process.figures(rows)
    assert "prmbench" not in process.figures(FIVE)
