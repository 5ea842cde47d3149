"""Lengths are measured on right trajectories alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.length import length_by_verdict, length_of_right
from rewardlab.rewards.reward import reward

WORDS = {"r": 1.0, "w": 0.0, "?": None}


def row(problem, letter: str, lengths: tuple[int, ...]) -> Trajectory:
    """Replies of these lengths with two tokens of answer between them."""
    turns = []
    for n in lengths:
        turns += [Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(n, np.int64), text=letter)]
    return Trajectory(problem, tuple(turns), "end")


@rollout
def two_each(problems, run, *, kinds: tuple[str, ...] = ("rw", "r?")):
    lengths = {"r": (3, 5), "w": (40,), "?": (50,)}
    rows = [[row(p, letter, lengths[letter]) for letter in kind] for p, kind in zip(problems, kinds, strict=True)]
    # the second group's right reply is shorter, and called nothing
    return [rows[0], [row(rows[1][0].problem, "r", (4,)), *rows[1][1:]]] if kinds[1][0] == "r" else rows


@reward
def verify(trajectory):
    return WORDS[trajectory.reply[-1]]


def test_only_right_trajectories_count():
    found = length_of_right(rollout=two_each())([ask("a"), ask("b")], Run(None, verify=verify()))
    # right: 3 + 5 tokens with one call, and 4 tokens with none
    assert found["right_length"] == 6
    assert found["log_right_length"] == pytest.approx(math.log(6))
    assert found["right_calls"] == 0.5
    assert found["pass@1"] == 0.5
    assert found["n"] == 2


def test_where_nothing_is_right_there_is_no_length():
    found = length_of_right(rollout=two_each(kinds=("ww", "w?")))([ask("a"), ask("b")], Run(None, verify=verify()))
    assert found["pass@1"] == 0
    assert math.isnan(found["right_length"])
    assert math.isnan(found["right_calls"])
    with pytest.raises(RewardlabError, match="name a task"):
        length_of_right(rollout=two_each())([ask("a"), ask("b")], Run(None))


def test_right_and_wrong_lengths_are_told_apart_and_those_without_a_verdict_are_in_neither():
    found = length_by_verdict(rollout=two_each(kinds=("rw", "rw")))([ask("a"), ask("b")], Run(None, verify=verify()))
    # right: 8 and 4 tokens; wrong: 40 twice
    assert (found["right_length"], found["wrong_length"]) == (6, 40)
    assert found["log_wrong_to_right"] == pytest.approx(math.log(40 / 6))
    assert found["pass@1"] == 0.5
    found = length_by_verdict(rollout=two_each())([ask("a"), ask("b")], Run(None, verify=verify()))
    # the second group's other reply has no verdict: it is not right, and its 50 tokens are not those of a wrong reply
    assert (found["right_length"], found["wrong_length"], found["pass@1"]) == (6, 40, 0.5)
    found = length_by_verdict(rollout=two_each(kinds=("ww", "w?")))([ask("a"), ask("b")], Run(None, verify=verify()))
    assert found["pass@1"] == 0
    assert math.isnan(found["log_wrong_to_right"])
    with pytest.raises(RewardlabError, match="length_by_verdict needs the task's verifier"):
        length_by_verdict(rollout=two_each())([ask("a"), ask("b")], Run(None))
