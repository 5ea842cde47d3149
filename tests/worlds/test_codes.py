"""Programs asked for in words: what the careless programmer writes, and what the easy tests let pass."""

from __future__ import annotations

import random

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.worlds.codes import codes, slip

PROGRAM = "keep > 3; unique; min"


@pytest.mark.parametrize(
    ("program", "written"),
    [
        (PROGRAM, "keep > 2; head"),
        ("keep < 3; * 2; max", "keep < 4; * 2; max"),
        ("unique; sum", "sum"),
        ("take 2; sum", "take 2; sum"),
    ],
)
def test_the_careless_programmer_makes_each_mistake_where_it_can(program, written):
    assert slip(program, random.Random(0), biased=1.0, error=0.0, slow=0.0) == written
    assert slip(program, random.Random(0), biased=0.0, error=0.0, slow=0.0) == program


def test_slow_programs_are_right_and_broken_ones_do_not_run():
    verifier, task = registry.part("reward", "list_program"), codes(test_size=1)
    for i in range(40):
        p = task.train[i]
        fast, slow, broken = (
            verifier.check(slip(p.meta["solution"], random.Random(i), 0.0, error, slow_), p.answer)
            for error, slow_ in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0))
        )
        assert (fast.correct, slow.correct, broken.correct) == (True, True, False)
        assert slow.parts["operations"] > fast.parts["operations"] > 0
        assert broken.parts["ran"] == 0


def test_wrong_programs_pass_most_tests_and_few_of_the_suite():
    verifier, task = registry.part("reward", "list_program"), codes(error=0.0, test_size=1)
    problems = [task.train[i] for i in range(200)]
    pairs = [(task.demonstrate(p, random.Random(i)), p) for i, p in enumerate(problems)]
    wrong = [(text, p) for text, p in pairs if not verifier.check(text, p.meta["suite"]).correct]
    passed = [verifier.check(text, p.answer).parts["passed"] for text, p in wrong]
    on_suite = [verifier.check(text, p.meta["suite"]).parts["passed"] for text, p in wrong]
    assert 50 < len(wrong) < 150
    assert sum(passed) / len(passed) > sum(on_suite) / len(on_suite) + 0.25


def test_verdicts_on_programs():
    verifier, answer = registry.part("reward", "list_program"), {"io": [["[]", "0"], ["[2, 1]", "2"], ["[3]", "3"]]}
    # max touches each number: 1 + 0, 1 + 2, 1 + 1
    right = verifier.check(" max\n", answer)
    assert (right.correct, right.tests, right.parts) == (
        True,
        (True,) * 3,
        {"passed": 1.0, "compiled": 1.0, "ran": 1.0, "operations": 6.0},
    )
    wrong = verifier.check("last", answer)
    assert (wrong.correct, wrong.tests, wrong.parts["ran"]) == (False, (True, False, True), 1.0)
    failing = verifier.check("max; sort", answer)
    assert (failing.tests, failing.parts["ran"], failing.parts["compiled"]) == ((False,) * 3, 0.0, 1.0)
    for text in ("", "the max", "max;" * 5000):
        unread = verifier.check(text, answer)
        assert (unread.correct, unread.tests, unread.parts["ran"], unread.parts["compiled"]) == (False, (False,) * 3, 0.0, 0.0)
    assert registry.part("reward", "list_program", partial=True).check("last", answer).pays == pytest.approx(2 / 3)
    for gold in (None, {}, {"io": []}, {"io": [["x", "1"]]}, {"io": [["1"]]}, {"io": 3}, {"io": [[1, 2]]}):
        assert verifier.check("max", gold).correct is None


def test_shares_are_checked():
    with pytest.raises(RewardlabError, match="slow is a probability"):
        codes(slow=2.0)
