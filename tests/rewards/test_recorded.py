"""What recorded labels of steps and verdicts on whole solutions pay."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.rewards.recorded import outcome_label, step_labels


def paid(reward, **meta):
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(6, np.int64)))
    [[score]] = reward([[Trajectory(ask("?", "1", **meta), turns, "end", steps=(3, 5, 7))]], None)
    return None if score.missing else list(score.steps)


def test_labels_after_the_first_error_can_be_left_out():
    labels = [1, 0, 0]
    assert paid(step_labels(), labels=labels) == [(3, 1.0), (5, 0.0), (7, 0.0)]
    assert paid(step_labels(after_error=False), labels=labels) == [(3, 1.0), (5, 0.0)]
    # a share is an error below 1/2, and null is none
    assert paid(step_labels(after_error=False), labels=[0.5, None, 0.4]) == [(3, 0.5), (7, 0.4)]
    assert paid(step_labels(after_error=False), labels=[1, 1, 1]) == [(3, 1.0), (5, 1.0), (7, 1.0)]


def test_a_whole_solution_is_judged_at_its_last_step():
    assert paid(outcome_label(), right=True, labels=[0, 0, 0]) == [(7, 1.0)]
    assert paid(outcome_label(), right=False) == [(7, 0.0)]
    # as CSV files have it
    assert [paid(outcome_label(), right=x) for x in ("True", "false", "1", 0)] == [[(7, x)] for x in (1.0, 0.0, 1.0, 0.0)]
    assert paid(outcome_label(), right="perhaps") is None


def test_where_no_verdict_is_recorded_labels_of_all_steps_say_it():
    assert paid(outcome_label(), labels=[1, 1, 0.2]) == [(7, 0.0)]
    assert paid(outcome_label(), labels=[1, 1, 1]) == [(7, 1.0)]
    assert paid(outcome_label(), labels=[1, None, 1]) is None
    assert paid(outcome_label()) is None
