"""Lengths are measured on right trajectories alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab.core import Outputs, Run, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.length import entropy_of_right, length_by_verdict, length_of_right
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


class Hesitant:
    """A policy whose entropy at a token is its number, in tenths of a nat."""

    device = torch.device("cpu")

    def evaluate(self, batch, wants):
        assert wants == ("entropy",)
        return Outputs(entropy=torch.where(batch.mask, batch.ids / 10, 0.0))


@rollout
def written(problems, run, *, replies: tuple = ()):
    """Each reply as its letter and the numbers of its tokens."""
    read = Turn(None, np.array([90, 90]))
    return [
        [Trajectory(p, (read, Turn("policy", np.array(ids, np.int64), text=letter)), "end") for letter, ids in group]
        for p, group in zip(problems, replies, strict=True)
    ]


def test_entropy_and_length_are_compared_among_the_right_replies_of_a_problem():
    # means .1 .3 .5 at lengths 1 2 3; the others are not right. Another problem is harder and longer as a whole: .9 .7 at 10 11
    first = (("r", [1]), ("r", [2, 4]), ("r", [5, 5, 5]), ("w", [1] * 9), ("?", [1] * 9))
    second = (("r", [9] * 10), ("r", [7] * 11))

    def measured(*replies):
        return entropy_of_right(rollout=written(replies=replies))(
            [ask("a"), ask("b")][: len(replies)], Run(Hesitant(), verify=verify())
        )

    found = measured(first, second)
    assert found["right_entropy"] == pytest.approx((0.1 + 0.3 + 0.5 + 0.9 + 0.7) / 5)
    assert found["right_length"] == pytest.approx((1 + 2 + 3 + 10 + 11) / 5)
    assert found["pass@1"] == pytest.approx((0.6 + 1.0) / 2)
    # deviations (-.2 -1) (0 0) (.2 1) and (.1 -.5) (-.1 .5): (.4 - .1) / sqrt((.08 + .02) (2 + .5)) = .6
    assert found["entropy_to_length"] == pytest.approx(0.6, abs=1e-5)
    assert measured(first)["entropy_to_length"] == pytest.approx(1.0, abs=1e-5)
    # a single right reply, or equal lengths, tell nothing
    assert math.isnan(measured((("r", [3]),))["entropy_to_length"])
    assert math.isnan(measured((("r", [3]), ("r", [5])))["entropy_to_length"])
    nothing = measured((("w", [3]),))
    assert math.isnan(nothing["right_entropy"])
    assert math.isnan(nothing["log_right_length"])
    with pytest.raises(RewardlabError, match="entropy_of_right needs the task's verifier"):
        entropy_of_right(rollout=written())([], Run(Hesitant()))
