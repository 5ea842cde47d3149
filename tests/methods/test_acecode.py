"""ACECode: an error, a failed test, or right and how fast."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.rewards import reward_of_right
from rewardlab.rewards.tests import log_cost
from rewardlab.sandbox import ProgramRun, Sandbox

IO = {"io": [["[]", "0"], ["[5]", "5"], ["[1, 3]", "3"], ["[4, 2]", "4"]]}


def rows(*texts: str, answer=IO, **meta) -> list[Trajectory]:
    problem = ask("Largest?", answer, **meta)
    return [Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), text=text),), "end") for text in texts]


def totals(group: list[Trajectory], verifier: str = "list_program", **settings) -> list[float | None]:
    run = Run(policy=None, verify=registry.part("reward", verifier))
    (scores,) = registry.build("acecode", settings).reward([group], run)
    return [s.total for s in scores]


def test_an_error_costs_more_than_a_wrong_value_and_slow_programs_earn_less():
    texts = ("max", "sort; last", "min", "max; sort", "the max", "")
    # max takes 1 + n operations on n numbers, 9 on all;   sort; last: sort 1 + 0, 1 + 1, 1 + 4, 1 + 4, and 2 each for last, 21
    assert totals(rows(*texts, solution="max")) == pytest.approx([1, 0.5 + 0.5 * 9 / 21, -0.5, -1, -1, -1])
    # faster than the reference: 21 / 9, of which 1 counts, or 2
    assert totals(rows("max", solution="sort; last")) == pytest.approx([1])
    assert totals(rows("max", "min", solution="sort; last"), max_ratio=2.0, wrong=0.0) == pytest.approx([1.5, 0])
    assert totals(rows("max", "sort; last", solution="max"), speed=0.0) == [1, 1]


def test_without_a_right_reference_only_wrong_programs_have_a_verdict():
    assert totals(rows("max", "min")) == [None, -0.5]
    assert totals(rows("max", "the max", solution="min")) == [None, -1]
    assert totals(rows("max", answer=None, solution="max")) == [None]
    with pytest.raises(RewardlabError, match="whether a program ran"):
        totals(rows("max", answer="max", solution="max"), "exact_match")


def test_cost_is_measured_on_right_programs_alone():
    run = Run(policy=None, verify=registry.part("reward", "list_program"))
    group = rows("sort; last", "min", "max", solution="max")
    (scores,) = log_cost()([group], run)
    assert [s.total for s in scores] == pytest.approx([math.log(21 / 9), math.log(9 / 9), 0])

    def rollout(problems, run):
        return [group]

    found = reward_of_right(reward=log_cost(), rollout=rollout)([group[0].problem], run)
    assert found["right_reward"] == pytest.approx(math.log(21 / 9) / 2)
    assert found["pass@1"] == pytest.approx(2 / 3)
    group = rows("min")
    assert math.isnan(reward_of_right(reward=log_cost(), rollout=rollout)([group[0].problem], run)["right_reward"])


def test_python_is_timed_in_the_sandbox():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    tests = {"tests": "assert f(3) == 6\nassert f(0) == 0"}
    fast, slow = "def f(n): return n * 2", "def f(n):\n    for _ in range(3_000_000): pass\n    return n * 2"
    group = rows(fast, slow, "def f(n): return n", "def f(n): return n.x", "def f(", answer=tests, solution=slow)
    found = totals(group, "code")
    assert found[0] == 1
    assert 0.6 < found[1] <= 1
    assert found[2:] == [-0.5, -1, -1]
    assert totals(rows(slow, answer=tests, solution=fast), "code")[0] < 0.75
