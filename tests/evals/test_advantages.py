"""How far rewards point within groups where the truth does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.advantages import advantage_cosine
from rewardlab.methods.shaping.verpo import check
from rewardlab.rewards.reward import reward
from rewardlab.worlds.codes import list_program


@rollout
def listed(problems, run):
    """The replies that stand in the problem."""
    ids = np.zeros(1, np.int64)
    return [[Trajectory(p, (Turn("policy", ids, text=text),), "end") for text in p.meta["replies"]] for p in problems]


def problem(*replies: str, answer=None, **meta):
    return ask("?", answer, replies=list(replies), **meta)


@reward
def true(trajectory):
    """The first digit; no verdict on ?."""
    return None if trajectory.reply == "?" else float(trajectory.reply[0])


@reward
def at_steps(trajectory):
    """The second digit as a step; no verdict on a reply of one sign."""
    return Score(steps=[(0, float(trajectory.reply[1]))]) if len(trajectory.reply) > 1 else Score(None)


@reward
def late(trajectory):
    """The last digit as a penalty."""
    return float(trajectory.reply[-1]) if trajectory.reply != "?" else None


def test_the_cosine_of_what_is_above_the_groups_mean():
    problems = [problem("000", "111", "232"), problem("150", "151", "9"), problem("?", "034", "154")]
    found = advantage_cosine(reward=at_steps() - late(), truth=true(), rollout=listed())(problems, Run(policy=None))
    # less their means: true -1, 0, 1;  steps 0, 1, 3: -4/3, -1/3, 5/3, cosine 3 / sqrt(2 * 42 / 9);  the last digits 0, 1, 2: -1
    # the second group has two replies with both verdicts, and these are equally good; the third pays 3 and 5, and 4 twice
    first = 3 / math.sqrt(2 * 42 / 9)
    assert found["cosine.at_steps"] == pytest.approx((first + 1) / 2)
    assert found["cosine.late"] == pytest.approx((-1 + 0) / 2)
    assert (found["signal.at_steps"], found["signal.late"], found["n"]) == (1.0, 0.5, 2.0)
    with pytest.raises(RewardlabError, match="no two replies"):
        advantage_cosine(reward=late(), truth=true(), rollout=listed())([problem("15", "16")], Run(policy=None))


def test_verpos_claim_looks_at_its_weights():
    # max, last and head are told apart by one test of four each
    io = {"io": [["[]", "0"], ["[5]", "5"], ["[1, 3]", "3"], ["[4, 2]", "4"]]}
    suite = {"io": [["[1, 9, 3]", "9"], ["[1, 2, 7]", "7"], ["[4, 2, 1]", "4"]]}
    group = problem("max", "last", "last", "min", answer=io, suite=suite)
    found = check.by.but(rollout=listed())([group], Run(policy=None, verify=list_program()))
    # passed by 4, 4, 3 and 1 of 4 at alpha 1 and sigma .1; on the suite 3, 1, 1 and 0 of 3 are right
    assert found["cosine.tests"] > found["cosine.share"] + 0.02
    assert found["cosine.share"] > 0.5
