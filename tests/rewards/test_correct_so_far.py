"""Partial solutions: finished lines alone are judged."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Message, Problem, Trajectory, Turn
from rewardlab.rewards.correct_so_far import correct_so_far

PROBLEM = Problem((Message("user", "7+5-2=?"),), "10", meta={"steps": ["7+5=12", "12-2=10"]})


def row(text, stop=None, problem=PROBLEM):
    return Trajectory(problem, (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(len(text), np.int64), text=text)), stop)


@pytest.mark.parametrize(
    ("text", "stop", "score"),
    [
        ("", None, 1.0),
        ("7+5=1", "entropy", 1.0),  # may yet become 12
        ("7+5=1", "end", 0.0),
        ("7+5=12\n", None, 1.0),
        ("7+5=13\n", None, 0.0),
        ("7+5=13\n13-2=11", None, 0.0),
        ("7+5=12\n12-2=1", "length", 1.0),
        ("7+5=12\n12-2=10\nAnswer: 10", "end", 1.0),
        ("7+5=12\n12-2=10\nAnswer: 11", "end", 0.0),
    ],
)
def test_a_beginning_is_right_until_a_finished_line_is_wrong(text, stop, score):
    assert correct_so_far()([[row(text, stop)]], None)[0][0].value == score


@pytest.mark.parametrize(
    ("text", "score"),
    [("7+", 1.0), ("7+5=1", 1.0), ("7+6", 0.0), ("7+5=12\n12 - 2", 1.0), ("7+5=13\n13-", 0.0), ("7+5=12\n12-2=10\nAns", 1.0),
     ("7+5=12\n12-2=10\nAnswer: 9", 0.0), ("7+5=12\n12-2=10\nAnswer: 10\nx", 0.0)],
)  # fmt: skip
def test_an_unfinished_line_is_wrong_once_it_cannot_become_right(text, score):
    assert correct_so_far(partial=True)([[row(text)]], None)[0][0].value == score


def test_a_problem_without_steps_gets_no_verdict():
    assert correct_so_far()([[row("7+5=13\n", problem=Problem(()))]], None)[0][0].value is None
