"""Ambiguous chains: the gold answer is one of those that are possible, and a teacher that says too much for sure."""

from __future__ import annotations

import random
from collections import Counter
from statistics import mean

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.text.confidences import stated_answers
from rewardlab.worlds.ambiguous import ambiguous


def test_every_reading_is_worked_out_from_the_words_and_each_is_meant_as_often():
    task, counts, places = ambiguous(test_size=10), Counter(), Counter()
    for i in range(1500):
        problem = task.train[i]
        start, *steps = problem.question.rstrip(".").split(". ")
        results = {int(start.removeprefix("Start with "))}
        for step in steps:
            verb, operands = step.split()[0], [int(x) for x in step.replace(",", "").split() if x.isdigit()]
            apply = {"Add": lambda a, b: a + b, "Subtract": lambda a, b: a - b, "Multiply": lambda a, b: a * b}[verb]
            results = {apply(value, operand) for value in results for operand in operands}
        assert {str(x) for x in results} == set(problem.meta["possible"])
        assert all(0 <= x <= 99 for x in results)
        counts[len(results)] += 1
        places[len(results), problem.meta["possible"].index(problem.answer)] += 1
    assert set(counts) == {1, 2, 3}
    assert min(counts.values()) > 300
    # the answer that was meant cannot be guessed from its place
    assert places[2, 0] / counts[2] == pytest.approx(0.5, abs=0.07)
    assert places[3, 2] / counts[3] == pytest.approx(1 / 3, abs=0.07)


def test_the_teacher_is_surer_than_it_is_right_whatever_the_problem():
    task = ambiguous(test_size=10, error=0.0)
    said = {1: [], 2: [], 3: []}
    for i in range(1500):
        problem = task.train[i]
        ((answer, confidence),) = stated_answers(task.demonstrate(problem, random.Random(i)))
        said[len(problem.meta["possible"])].append((answer == problem.answer, confidence))
    for count, rows in said.items():
        assert mean(ok for ok, _ in rows) == pytest.approx(1 / count, abs=0.07)
        # (.1 + .3 + 2 * .5 + 3 * .7 + 5 * .9) / 12
        assert mean(q for _, q in rows) == pytest.approx(8 / 12, abs=0.04)


def test_a_list_of_answers_repeats_as_often_as_asked():
    task = ambiguous(readings=4, answers=3, again=0.0, error=0.0, test_size=10)
    often = ambiguous(readings=4, answers=3, again=1.0, error=0.0, test_size=10)
    for i in range(50):
        problem = task.train[i]
        listed = [x.answer for x in stated_answers(task.demonstrate(problem, random.Random(i)))]
        assert len(set(listed)) == 3
        assert set(listed) < set(problem.meta["possible"])
        assert len({x.answer for x in stated_answers(often.demonstrate(problem, random.Random(i)))}) == 1


@pytest.mark.parametrize("readings", [0, 5, (3, 2), "two"])
def test_readings_that_make_no_sense_are_refused(readings):
    with pytest.raises(RewardlabError, match="ambiguous: readings is a number from 1 to 4"):
        ambiguous(readings=readings)
