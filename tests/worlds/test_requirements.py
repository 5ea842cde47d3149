"""Requirements in words: their formulas, and what the careless writer makes of them."""

from __future__ import annotations

import random

from rewardlab.text.stl import atoms, parse
from rewardlab.verifiers.stl import stl_equivalent
from rewardlab.worlds.requirements import requirements


def test_prompts_name_the_signals_and_numbers_of_their_formulas():
    task = requirements(size=100, test_size=20)
    operators = set()
    for problem in [*(task.train[i] for i in range(100)), *task.test]:
        formula = parse(problem.answer)
        operators.add(problem.answer[0])
        words = problem.question.replace(",", "").split()
        assert all(of.signal in words and f"{of.bound:g}" in words for of in atoms(formula))
        assert stl_equivalent().check(problem.answer, problem.answer).correct
    assert {"G", "F"} < operators
    assert not {p.question for p in task.test} & {task.train[i].question for i in range(100)}


def test_the_writer_is_as_careful_as_it_is_said_to_be():
    for care in (0.2, 0.8):
        task, rng = requirements(care=care, size=300), random.Random(0)
        same = [task.demonstrate(problem, rng) == problem.answer for problem in (task.train[i] for i in range(300))]
        # a slip that a formula has no place for is not made
        assert care - 0.05 < sum(same) / 300 < care + 0.15
