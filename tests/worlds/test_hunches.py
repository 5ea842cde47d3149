"""Hunches: right solutions, and how often hunches are right."""

from __future__ import annotations

import random

from rewardlab import registry
from rewardlab.core import Trajectory
from rewardlab.verifiers.choice.rationale import rationale_agrees
from rewardlab.verifiers.choice.verifier import choice
from rewardlab.worlds.hunches import LETTERS, MEANS
from tests.helpers.rows import Replies


def said(problem, text):
    return Replies([]).write([Trajectory(problem)], [text])


def test_solutions_are_right_and_say_what_they_go_by():
    for problem in registry.task("hunches").test[:20]:
        group = said(problem, problem.meta["solution"])
        assert choice()([group])[0][0].value == 1.0
        assert rationale_agrees()([group])[0][0].value == 1.0
        lines = dict(line.split() for line in problem.question.splitlines()[1:])
        assert list(lines.values()) == list(LETTERS)
        assert lines[MEANS[problem.meta["sign"]]] == problem.answer


def test_hunches_are_mostly_the_first_option_and_right_by_chance():
    task, rng = registry.task("hunches"), random.Random(0)
    rows = [(p, task.demonstrate(p, rng)) for p in task.test[:600]]
    hunches = [(p, text) for p, text in rows if "\n" not in text]
    assert 0.33 < len(hunches) / len(rows) < 0.47
    # .6, and a quarter of the rest
    assert 0.6 < sum(text == "Answer: A" for _, text in hunches) / len(hunches) < 0.8
    assert 0.15 < sum(text[-1] == p.answer for p, text in hunches) / len(hunches) < 0.35
    known = [(p, text) for p, text in rows if "\n" in text]
    assert 0.78 < sum(text == p.meta["solution"] for p, text in known) / len(known) < 0.92
    assert rationale_agrees()([said(*hunches[0])])[0][0].value == 0.0
