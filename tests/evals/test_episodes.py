"""Accuracy at the end of episodes, by a rollout whose outcome is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.verifiers.match import final_answer


@rollout
def played(problems, run, *, n=1):
    """Of each problem n episodes of two turns, that end with what its meta says."""
    return [[Trajectory(p, (said("Search: x"), said(None), said(reply))) for reply in p.meta["replies"][:n]] for p in problems]


def said(text):
    return Turn(None if text is None else "policy", np.zeros(1, np.int64), text=text or "")


def test_it_is_the_share_of_right_endings_and_counts_turns():
    problems = [
        ask("a", "Bob", replies=["Answer: Bob"]),
        ask("b", "Cal", replies=["Answer: Bob"]),
        ask("c", replies=["Answer: Bob"]),
    ]
    found = episode_accuracy(rollout=played())(problems, SimpleNamespace(verify=final_answer()))
    # one right, one wrong, one without a gold answer, which counts as not right
    assert found["pass@1"] == pytest.approx(1 / 3)
    assert (found["n"], found["turns"]) == (3, 2)
    assert found["ci95_low"] < 1 / 3 < found["ci95_high"]


def test_several_episodes_of_a_problem_are_averaged_first():
    problem = ask("a", "Bob", replies=["Answer: Bob", "Answer: Cal", "no", "Answer: Bob"])
    assert episode_accuracy(rollout=played(n=4))([problem], SimpleNamespace(verify=final_answer()))["pass@1"] == 0.5


def test_without_a_verifier_it_says_so():
    with pytest.raises(RewardlabError, match="name a task"):
        episode_accuracy(rollout=played())([ask("a")], SimpleNamespace(verify=None))
