"""Accuracy at the end of episodes, by a rollout whose outcome is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.episode_curve import episode_curve
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


def test_a_problem_is_solved_where_one_of_several_episodes_is_right():
    problems = [
        ask("a", "Bob", replies=["Answer: Bob", "Answer: Cal", "no", "So it is Bob. Answer: Bob"]),
        ask("b", "Cal", replies=["Answer: Bob"] * 4),
        ask("c", replies=["Answer: Bob"] * 4),
    ]
    found = episode_curve(rollout=played(n=4))(problems, SimpleNamespace(verify=final_answer()))
    # of the first problem's four episodes two are right, of which a pair misses both once in six; the last has no gold answer
    assert {k: found[k] for k in ("pass@1", "pass@2", "pass@4")} == pytest.approx(
        {"pass@1": 0.5 / 3, "pass@2": (1 - 1 / 6) / 3, "pass@4": 1 / 3}
    )
    assert "pass@8" not in found
    assert (found["distinct"], found["n"], found["turns"]) == (pytest.approx(1 / 3), 3, 2)


@pytest.mark.parametrize("measure", [episode_accuracy, episode_curve])
def test_without_a_verifier_it_says_so(measure):
    with pytest.raises(RewardlabError, match="name a task"):
        measure(rollout=played())([ask("a")], SimpleNamespace(verify=None))
