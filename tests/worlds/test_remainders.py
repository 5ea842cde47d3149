"""Remainders: the answers, a teacher whose wrong chains are sometimes right, and the check of chains."""

from __future__ import annotations

import random

import numpy as np

from rewardlab.core import Trajectory, Turn
from rewardlab.worlds.remainders import remainders, right_chain


def test_answers_are_the_remainders_of_what_the_steps_give():
    for problem in [*(remainders().train[i] for i in range(30)), *remainders(test_size=30).test]:
        result = int(problem.meta["steps"][-1].rpartition("=")[2])
        assert problem.answer == str(result % 4)
        assert problem.meta["solution"].endswith(f"\nAnswer: {result % 4}")
    assert {remainders(by=2, difficulty=(3, 6)).train[i].answer for i in range(30)} == {"0", "1"}
    assert len(remainders(size=20).train) == 20


def judged(problem, text: str) -> float | None:
    return right_chain()([[Trajectory(problem).plus(Turn("policy", np.zeros(1, np.int64), text=text))]], None)[0][0].value


def test_a_wrong_chain_is_told_whatever_its_answer():
    task = remainders(error=0.5)
    lucky = wrong = 0
    for i in range(200):
        problem = task.train[i]
        said = task.demonstrate(problem, random.Random(i))
        sound = judged(problem, said)
        same = said.rpartition("\n")[0].split() == problem.meta["steps"]
        assert sound == float(same)
        wrong += not same
        lucky += not same and said.endswith(f"Answer: {problem.answer}")
    # about a quarter of what is wrong has the right answer by chance
    assert 0.1 < lucky / wrong < 0.4


def test_spaces_do_not_matter_and_an_answer_alone_is_no_chain():
    problem = remainders().train[0]
    lines = problem.meta["solution"].split("\n")
    assert judged(problem, "\n".join(" ".join(line) if "=" in line else line for line in lines)) == 1.0
    assert judged(problem, lines[-1]) == 0.0
    assert judged(problem, "\n".join(lines[1:])) == 0.0
