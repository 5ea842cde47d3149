"""Calibration: numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from rows import Replies

from rewardlab.core import Run, ask
from rewardlab.evals.calibration import answer_sets, calibration, expected_calibration_error
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.match import final_number


def run(replies: list[str]) -> Run:
    return Run(Replies(replies), verify=final_number())


def test_confidences_are_compared_with_accuracy_bin_by_bin():
    # bin .7: three answers at .7, one right: |2.1 - 1| = 1.1;  last bin, with 1: .95 and 1, both right: |1.95 - 2| = .05;  / 5
    assert expected_calibration_error([0.7, 0.7, 0.7, 0.95, 1.0], [True, False, False, True, True]) == pytest.approx(1.15 / 5)
    # .3 belongs to the bin from .3 on, though .3 * 10 is below 3 in binary for some tenths
    assert expected_calibration_error([0.3, 0.35], [True, False]) == pytest.approx(abs(0.65 - 1) / 2)
    assert expected_calibration_error([0.29, 0.3], [True, False]) == pytest.approx((0.71 + 0.3) / 2)
    assert math.isnan(expected_calibration_error([], []))


def test_what_replies_state_is_measured_and_those_that_state_nothing_are_counted():
    replies = ["Answer: 2\nConfidence: 0.9", "Answer: 3\nConfidence: 0.9", "Answer: 2\nConfidence: 0.5", "Answer: 2"]
    found = calibration(rollout=independent(n=1))([ask("1+1?", "2")] * 4, run(replies))
    assert found["pass@1"] == 0.75
    assert found["stated"] == 0.75
    # (.01 + .81 + .25) / 3;  bins: |1.8 - 1| and |.5 - 1|, / 3;  right .9, .5 against wrong .9: half, and none
    assert found["brier"] == pytest.approx(1.07 / 3)
    assert found["ece"] == pytest.approx(1.3 / 3)
    assert found["auroc"] == pytest.approx(0.25)
    assert found["overconfidence"] == pytest.approx(2.3 / 3 - 2 / 3)


def test_what_cannot_be_said_is_left_out():
    found = calibration(rollout=independent(n=1))([ask("1+1?", "2")] * 2, run(["Answer: 2", "2"]))
    assert found["stated"] == 0
    assert "brier" not in found
    found = calibration(rollout=independent(n=1))([ask("1+1?", "2")], run(["Answer: 2\nConfidence: 0.5"]))
    assert "auroc" not in found  # nothing is wrong
    assert found["brier"] == 0.25


def test_sets_of_answers_are_measured_by_what_they_cover():
    replies = [
        "Answer: 2\nConfidence: 0.5\nAnswer: 3\nConfidence: 0.5",
        "Answer: 3\nConfidence: 1.0\nAnswer: 3.0\nConfidence: 0.2",
        "Answer: 4\nConfidence: 0.0\nAnswer: 2",
    ]
    found = answer_sets(rollout=independent(n=1))([ask("1+1?", "2")] * 3, run(replies))
    assert found["coverage"] == pytest.approx(2 / 3)
    # of six answers one repeats another: its second confidence does not count
    assert found["distinct"] == pytest.approx(5 / 3)
    assert found["unique"] == pytest.approx(5 / 6)
    # .25, .25, 1, 0; the right answer of the last reply has no confidence
    assert found["brier"] == pytest.approx(1.5 / 4)
    assert found["pass@1"] == pytest.approx(1 / 3)
    assert found["answers_per_100"] == pytest.approx(100 * 5 / 3)


def test_without_a_verifier_there_is_nothing_to_compare_with():
    with pytest.raises(Exception, match="name a task"):
        calibration(rollout=independent(n=1))([ask("1+1?", "2")], replace(run(["2"]), verify=None))
