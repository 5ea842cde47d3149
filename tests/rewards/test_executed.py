"""Steps that a judge checks with code, and the chance of its verdict."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from rewardlab.core import Run, TokenCount, Trajectory, Turn, ask
from rewardlab.methods.process.genprm import Checking, executed_checks, rationales
from rewardlab.models.embedded import untrained
from rewardlab.rewards.own_verdict import chance_of, chances, own_verdict

QUESTION = ask("Start with 7. Add 5. Multiply by 3.")


class CodingJudge:
    """A policy of characters that has a step's equation computed, and is sure at 4 to 1 of what it read; it says so, or not."""

    name, context = "judge", 5000

    def __init__(self, programs=None, verdicts=True):
        self.programs, self.verdicts, self.token_count = programs, verdicts, TokenCount()

    def turn(self, author, text):
        return Turn(author, np.array([ord(c) for c in text], np.int64), text=text)

    def read(self, rows, messages):
        return [t.plus(self.turn(None, new[-1].text)) for t, new in zip(rows, messages, strict=True)]

    def write(self, rows, replies):
        return [t.plus(self.turn("judge", text), "end") for t, text in zip(rows, replies, strict=True)]

    def extend(self, rows, sampling, rng):
        return self.write(rows, [self.goes_on(t) for t in rows])

    def goes_on(self, t):
        said = t.turns[-1].text
        if "[Code Output]" not in said:
            left, _ = self.equation(t)
            return self.programs or f"It should be\n```python\nprint({left})\n```\n"
        return f"So it is \\boxed{{{'Yes' if self.agrees(t) else 'No'}}}." if self.verdicts else "Who knows?"

    def equation(self, t):
        return re.findall(r"(\d+[-+*]\d+)=(\d+)", t.turns[0].text)[-1]

    def agrees(self, t):
        return f"```\n{self.equation(t)[1]}\n```" in t.turns[2].text

    def score(self, rows):
        return [self.logprobs(t) for t in rows]

    def logprobs(self, t):
        found = np.full(len(t), -0.5)
        yes = t.turns[-1].text.endswith("Yes}")
        found[-1] = math.log(0.8 if yes == self.agrees(t) else 0.2)
        # Yes} is a character longer than No}, which counts for nothing here
        found[-4 if yes else -3 : -1] = 0.0
        return found


def solution(text):
    judge = CodingJudge()
    row = Trajectory(QUESTION).plus(judge.turn(None, "?")).plus(judge.turn("policy", text), "end")
    ends = [i for i, c in enumerate(text) if c == "\n"] + [len(text) - 1]
    return Trajectory(QUESTION, row.turns, "end", steps=tuple(1 + at for at in ends))


def scored(row, judge, **settings):
    (score,) = executed_checks(**settings)([[row]], Run(policy=None, models={"judge": judge}))[0]
    return score


def test_the_code_is_run_and_what_it_prints_decides():
    # 7+5 is 12; 13*3 is 39, and the step is judged by itself
    row = solution("7+5=13\n13*3=39")
    assert [paid for _, paid in scored(row, CodingJudge()).steps] == pytest.approx([0.2, 0.8])
    assert [at for at, _ in scored(row, CodingJudge()).steps] == list(row.steps)


def test_without_a_run_the_output_is_not_known():
    assert [paid for _, paid in scored(solution("7+5=12"), CodingJudge(), seconds=None).steps] == pytest.approx([0.2])


def test_programs_that_fail_are_told_why_and_verdicts_that_are_missing_do_not_vote():
    run = Run(policy=None, models={"judge": CodingJudge("```python\n1/0\n```\n")})
    ((found,),) = rationales(run, "judge", [ask("7+5=12")], Checking())
    assert "ZeroDivisionError" in found.said[1]
    assert found.right is False
    silent = scored(solution("7+5=12"), CodingJudge(verdicts=False))
    assert silent.missing
    none = CodingJudge("I need no code.")
    ((found,),) = rationales(Run(policy=None, models={"judge": none}), "judge", [ask("7+5=12")], Checking())
    assert "no program was found" in found.said[1]


def test_rationales_vote_and_are_counted():
    row, run = solution("7+5=12"), Run(policy=None, models={"judge": CodingJudge()})
    (score,) = executed_checks(votes=3)([[row]], run)[0]
    assert [paid for _, paid in score.steps] == pytest.approx([0.8])
    # three analyses and three verdicts
    assert run.metrics["completions"] == 6
    small = CodingJudge()
    small.context = 10
    assert scored(row, small).missing


def test_the_chance_of_a_verdict_is_that_of_the_policys_own_distribution():
    policy = untrained(0)
    (row,) = policy.read([Trajectory(QUESTION)], [QUESTION.prompt])
    stem, (yes, no) = "1+1=2 2 +\nFinal: ", ("+", "-")
    both = policy.score(policy.write([row, row], [stem + yes, stem + no]))
    log_odds = float(both[0][len(row) :].sum() - both[1][len(row) :].sum())
    (found,) = chance_of(policy, [row], [stem], yes, no)
    assert found == pytest.approx(1 / (1 + math.exp(-log_odds)), abs=1e-6)
    # the last verdict counts, whichever it is; without one there is no chance
    said = chances(policy, [row, row, row], [stem + "-", stem + "+", "1+1=2 2 +"], yes, no)
    assert said == [pytest.approx(found), pytest.approx(found), None]


def test_a_soft_verdict_is_a_chance_and_a_hard_one_a_share():
    class Sure(CodingJudge):
        def goes_on(self, t):
            return "Final: right"

        def score(self, rows):
            return [np.array([0.0] * (len(t) - 1) + [math.log(0.6 if t.reply.endswith("right") else 0.2)]) for t in rows]

    row, run = solution("7+5=12"), Run(policy=Sure())
    assert own_verdict(samples=2)([[row]], run)[0][0].value == 1.0
    assert own_verdict(samples=2, soft=True)([[row]], run)[0][0].value == pytest.approx(0.75)
