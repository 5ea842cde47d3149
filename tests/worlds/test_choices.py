"""The world of multiple choice whose knowledge is in the prompt."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Problem, Trajectory, Turn

TASK = registry.task("choices", test_size=40)


def values(problem: Problem, text: str) -> dict[str, float]:
    reply = Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
    parts = ("choice", "rationale_agrees", "rationale_coverage")
    return {part: registry.part("reward", part)([[reply]])[0][0].value for part in parts}


def test_any_two_of_the_persons_signs_leave_the_right_name_alone():
    for problem in TASK.test:
        meta = problem.meta
        right = meta["options"]["ABCD".index(problem.answer)]
        known = {sign: set(names) for sign, names in meta["known"].items()}
        assert len(meta["required"]) == 3
        for a, b in combinations(meta["required"], 2):
            assert known[a] & known[b] == {right}
        # one is not needed, another not the person's
        assert len(known.keys() - set(meta["required"])) == 1
        assert all(sign in problem.question.splitlines()[4] for sign in meta["required"])


def test_the_gold_solution_is_right_faithful_and_complete_and_what_a_user_brings_is_in_the_columns():
    for problem in TASK.test:
        assert values(problem, problem.meta["solution"]) == {"choice": 1, "rationale_agrees": 1, "rationale_coverage": 1}
        assert set(problem.meta) == set(TASK.columns) - {"prompt", "answer"}


def shares(**settings: float) -> np.ndarray:
    task = registry.task("choices", test_size=1, **settings)
    rows = [values(p, task.demonstrate(p, random.Random(i))) for i, p in enumerate(task.train[i] for i in range(300))]
    return np.array([list(row.values()) for row in rows])


def test_the_hasty_teacher_is_right_half_the_time_and_a_contradiction_does_not_change_the_answer():
    hasty = shares(hasty=1.0, contradicts=0.0)
    assert hasty[:, 0].mean() == pytest.approx(0.5, abs=0.1)
    assert hasty[:, 1].all()
    assert np.allclose(hasty[:, 2], 1 / 3)
    contradicting = shares(hasty=0.0, contradicts=1.0)
    assert contradicting[:, 0].all()
    assert not contradicting[:, 1].any()
    assert contradicting[:, 2].min() == pytest.approx(2 / 3)


def test_replies_fit_and_problems_are_as_many_as_asked_for():
    assert len(registry.task("choices", size=16, test_size=1).train) == 16
    assert len(TASK.test) == 40
