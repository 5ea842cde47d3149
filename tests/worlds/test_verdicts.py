"""Judging solutions step by step: the task, how judgements are read, and what they pay."""

import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn
from rewardlab.models.embedded import untrained
from rewardlab.text.splitters import mark
from rewardlab.worlds.verdicts import every_step_judged, final_verdict, read, step_verdicts, to_judge, worked, written

GOLD = ["7+5=12", "12*3=36"]  # Start with 7. Add 5. Multiply by 3.


@pytest.mark.parametrize(
    ("lines", "should"),
    [
        (["7+5=12", "12*3=36", "Answer: 36"], ["7+5=12", "12*3=36", "Answer: 36"]),
        (["7+5=13", "13*3=39", "Answer: 39"], ["7+5=12", "13*3=39", "Answer: 39"]),  # what only carries an error on is right
        (["7+5=12", "12+3=15", "Answer: 15"], ["7+5=12", "12*3=36", "Answer: 15"]),  # true, but not what was asked
        (["7+5=12", "13*3=39", "Answer: 39"], ["7+5=12", "12*3=36", "Answer: 39"]),  # true, but does not go on from 12
        (["7+5=12", "12*3=36", "Answer: 12"], ["7+5=12", "12*3=36", "Answer: 36"]),
        (["7+5=12"], ["7+5=12"]),
        (["seven", "Answer: 36"], ["7+5=12", "seven*3=?"]),
    ],
)
def test_a_step_is_judged_by_what_came_before_it(lines, should):
    assert worked(GOLD, lines) == should


def test_gold_judgements_get_full_marks_and_flipped_ones_none():
    task = registry.task("verdicts")
    problems = [task.train[i] for i in range(100)]
    for p in problems:
        assert p.answer == "right" or not all(p.meta["verdicts"])
        gold = replied(p, p.meta["solution"])
        flipped = written(p.meta["lines"], [not ok for ok in p.meta["verdicts"]], p.answer != "right", p.meta["should"])
        assert read(p.meta["solution"]).steps == p.meta["verdicts"]
        assert final_verdict()([[gold]])[0][0].value == every_step_judged()([[gold]])[0][0].value == 1
        assert final_verdict()([[replied(p, flipped)]])[0][0].value == 0
    assert 20 < sum(p.answer == "right" for p in problems) < 80
    assert not {p.key for p in task.test} & {p.key for p in problems}


def test_a_teacher_who_works_every_step_out_wrong_finds_fault_with_every_right_one():
    task = registry.task("verdicts", doubt=1.0)
    p = next(p for p in task.test if all(p.meta["verdicts"]))
    assert not any(read(task.demonstrate(p, random.Random(0))).steps)
    said = read(registry.task("verdicts", doubt=0.0).demonstrate(p, random.Random(0)))
    assert said.steps == p.meta["verdicts"]
    assert said.final


@pytest.mark.parametrize(
    ("reply", "steps", "final"),
    [
        ("7+5=12 12 +\nAnswer: 12 13 -\nFinal: -", [True, False], False),
        ("7+5=12 12 +\nFinal: +", [True], True),
        ("7+5=12 12\nFinal: +", [], None),
        ("+\n-", [], None),
        ("7+5=12 12 +\nFinal: perhaps", [True], None),
        # as language models write it: blank lines, words, emphasis
        (
            "1. 7 plus 5 is 12, as the question asks. +\n\n2. " + "so " * 60 + "the answer is 13 **-**\n\n**Final: -**",
            [True, False],
            False,
        ),
        ("1. 7 plus 5 is 12, as asked. +\n\n2. " + "so " * 60 + "the answer is 13. -\n\n**Final: -**", [True, False], False),
        ("7+5=12 +.\nFinal: +.", [True], True),
        # as verifiers of older runs write it
        ("1: 7+5=12, right\n2: Answer: 12, wrong\nFinal: wrong", [True, False], False),
        ("1: right\nFinal: right", [True], True),
        ("1: right\n3: right\nFinal: right", [], None),
        ("1: right\n2: perhaps\nFinal: right", [], None),
        ("1: right\n2: right", [True, True], None),
        ("1: right\nFinal: dunno", [True], None),
        ("", [], None),
    ],
)
def test_judgements_are_read_as_far_as_they_are_well_formed(reply, steps, final):
    assert read(reply) == (steps, final)


def test_a_judgement_that_leaves_out_a_step_is_not_whole():
    p = to_judge("Start with 7.", GOLD, True)
    assert p.question.splitlines() == ["Start with 7.", "1: 7+5=12", "2: 12*3=36"]
    assert every_step_judged()([[replied(p, "1: right\nFinal: right")]])[0][0].value == 0
    assert every_step_judged()([[replied(p, "1: right\n2: right\nFinal: right")]])[0][0].value == 1


class Says:
    """A verifier that says the same of every solution, in its own tokens, through the policy's own calls."""

    def __init__(self, policy, text):
        self.policy, self.text, self.read, self.context = policy, text, policy.read, policy.context

    def extend(self, rows, sampling, rng):
        return self.policy.write(rows, [self.text] * len(rows)) if rows else []


def test_verdicts_pay_the_ends_of_their_steps():
    policy = untrained(0)
    problem = registry.task("arithmetic").train[0]
    (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), ["7+5=12\n12*3=36\nAnswer: 36"])
    t = mark(t, "newline", policy.pieces)
    run = Run(policy, models={"verifier": Says(policy, "1: right\n2: wrong\n3: right\nFinal: wrong")})
    score = step_verdicts()([[t]], run)[0][0]
    # three steps: a third each, the second against
    assert [at for at, _ in score.steps] == list(t.steps)
    assert [r for _, r in score.steps] == pytest.approx([1 / 3, -1 / 3, 1 / 3])
    assert score.value == 0
    run.models["verifier"].context = 50
    assert step_verdicts()([[t]], run)[0][0].why == "not judged: the solution does not fit the verifier's context"
    run.models["verifier"].context, run.models["verifier"].text = 512, "1: right\nFinal: right"
    short = step_verdicts()([[t]], run)[0][0]
    assert (short.total, short.steps, short.terms["step_verdicts"].value) == (0, (), None)


def test_a_judgement_sets_what_a_step_should_be_beside_what_it_says():
    lines, should = ["7+5=13", "13*3=39", "Answer: 39"], ["7+5=12", "13*3=39", "Answer: 39"]
    text = "7+5=12 13 -\n13*3=39 39 +\nAnswer: 39 39 +\nFinal: -"
    assert written(lines, [False, True, True], False, should) == text
    assert read(text) == ([False, True, True], False)
    assert written(["seven"], [False], False, ["7+5=12"]).splitlines()[0] == "7+5=12 seven -"


def replied(problem, text):
    return Trajectory(problem, (Turn("policy", np.zeros(1, int), text=text),), "end")
