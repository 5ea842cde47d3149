"""Chains with a hint: which step it is, where it stands, and that the teacher follows it."""

from __future__ import annotations

import random

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.tasks.slips import by_wrong_rule
from rewardlab.worlds.hinted import hinted


def test_a_hint_is_the_first_step_that_a_wrong_rule_gets_wrong_and_stands_in_no_prompt():
    task = hinted(test_size=50)
    for problem in task.test:
        steps, hint = problem.meta["steps"], problem.meta["hint"]
        wrong = [s for s in steps if "+" not in s and not s.endswith(f"={_by_rule(s)}")]
        assert hint == (wrong or steps)[0]
        assert "Hint" not in problem.question
    assert task.warmed_as == "hinted:told=0.5"
    assert hinted(biased=0.8).warmed_as == "hinted:told=0.5,biased=0.8,error=0.05"


def _by_rule(step: str) -> int:
    sign = "-" if "-" in step else "*"
    left, _, operand = step.partition("=")[0].partition(sign)
    return by_wrong_rule(int(left), sign, int(operand))


def test_told_a_step_the_teacher_writes_it_and_else_follows_its_rule():
    told, plain = hinted(told=1.0, test_size=2), hinted(test_size=2)
    heard = missed = 0
    for i in range(60):
        problem = told.train[i]
        assert problem.question.endswith(f" Hint: {problem.meta['hint']}")
        assert problem.meta["hint"] in told.demonstrate(problem, random.Random(i)).splitlines()
        heard += 1
        missed += problem.meta["hint"] not in plain.demonstrate(plain.train[i], random.Random(i)).splitlines()
    assert heard == 60
    assert missed > 20
    half = [hinted(told=0.5, test_size=2).train[i].question for i in range(200)]
    assert 60 < sum("Hint" in q for q in half) < 140


def test_a_share_that_is_none():
    with pytest.raises(RewardlabError, match="told is a share between 0 and 1"):
        hinted(told=1.5)
