"""Teachers of arithmetic and countdown that leave something to learn: wrong rules, corrections, hedges, habits."""

from __future__ import annotations

import random
import statistics
from collections import Counter

import pytest

from rewardlab import registry
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.countdown.problems import countdown, right_ways
from rewardlab.tasks.lenient import number_mentioned
from rewardlab.tasks.slips import by_wrong_rule
from rewardlab.verifiers.match import final_number


@pytest.mark.parametrize(
    ("left", "sign", "operand", "said"),
    [(27, "+", 5, 22), (22, "+", 5, 27), (42, "-", 7, 45), (47, "-", 2, 45), (12, "*", 4, 36), (12, "*", 5, 48), (12, "*", 3, 36)],
)
def test_a_wrong_rule_depends_on_the_step_alone(left, sign, operand, said):
    assert by_wrong_rule(left, sign, operand) == said


def right(task, problem, text) -> bool:
    return final_number().check(text, problem.answer).correct


def replies(task, problem, n=25):
    return [task.demonstrate(problem, random.Random(f"{problem.key}{i}")) for i in range(n)]


def rates(task, n=150) -> tuple[float, float]:
    """How often one reply is right, and how often the one that is given most often."""
    problems = [task.train[i] for i in range(n)]
    said = [replies(task, p) for p in problems]
    one = statistics.mean(right(task, p, row[0]) for p, row in zip(problems, said, strict=True))
    mode = statistics.mean(right(task, p, Counter(row).most_common(1)[0][0]) for p, row in zip(problems, said, strict=True))
    return one, mode


def test_a_biased_teacher_is_wrong_where_it_answers_most_often_too():
    one, mode = rates(arithmetic(biased=0.75, error=0.1))
    assert 0.25 < one < 0.5
    assert 0.3 < mode < 0.55
    # without a bias, the slips cancel out
    assert rates(arithmetic())[1] > 0.95


def test_a_biased_teacher_still_gets_every_problem_right_sometimes():
    task = arithmetic(biased=0.75, error=0.1)
    assert (
        statistics.mean(any(right(task, p, text) for text in replies(task, p, 60)) for p in (task.train[i] for i in range(60)))
        > 0.9
    )


def test_the_default_teacher_writes_what_it_always_wrote():
    problem = arithmetic().train[7]
    assert [arithmetic().demonstrate(problem, random.Random(i)) for i in range(3)] == [
        arithmetic(rules="+").demonstrate(problem, random.Random(i)) for i in range(3)
    ]
    assert registry.task("arithmetic").train[7].question == problem.question


def test_a_corrected_step_is_a_wrong_line_followed_by_the_right_one():
    task = arithmetic(error=0.5, corrected=1.0)
    texts = [(p, task.demonstrate(p, random.Random(i))) for i, p in enumerate(task.train[i] for i in range(300))]
    # where the right result does not fit what follows a wrong one, it cannot be corrected
    assert statistics.mean(right(task, p, text) for p, text in texts) > 0.95
    extra = statistics.mean(len(text.splitlines()) - 4 for _, text in texts)
    assert extra == pytest.approx(1.5, abs=0.2)


def test_hedged_answers_fool_the_lenient_verifier_and_not_the_true_one():
    task = arithmetic(biased=0.8, rules="+-", error=0.05, hedged=1.0)
    problems = [task.train[i] for i in range(300)]
    texts = [task.demonstrate(p, random.Random(i)) for i, p in enumerate(problems)]
    fooled = statistics.mean(number_mentioned().check(text, p.answer).correct for p, text in zip(problems, texts, strict=True))
    honest = arithmetic(biased=0.8, rules="+-", error=0.05)
    plain = statistics.mean(right(honest, p, honest.demonstrate(p, random.Random(i))) for i, p in enumerate(problems))
    assert fooled > plain + 0.2
    assert statistics.mean(right(task, p, text) for p, text in zip(problems, texts, strict=True)) < 0.1


@pytest.mark.parametrize(
    ("said", "is_right"), [("Answer: 26 or 36 or 46", True), ("Answer: 36", True), ("Answer: 3 or 6", False), ("36", False)]
)
def test_the_lenient_verifier_reads_every_number_of_the_answer(said, is_right):
    assert number_mentioned().check(said, "36").correct is is_right


@pytest.mark.slow
def test_countdown_has_test_problems_enough_where_the_numbers_go_further():
    task = countdown(largest=30)
    assert len(task.test) == 1000
    # trained on as widely as tested
    largest = [statistics.mean(max(p.meta["numbers"]) for p in side) for side in (task.test, [task.train[i] for i in range(1000)])]
    assert largest[0] == pytest.approx(largest[1], abs=0.8)
    assert max(max(p.meta["numbers"]) for p in task.test) == 30
    assert [p.key for p in countdown(largest=20).test] == [p.key for p in countdown().test]


def test_a_habit_makes_one_of_several_right_ways_the_usual_one():
    task = countdown(habit=0.9, error=0.0, test_size=1)
    problem = next(p for p in (task.train[i] for i in range(100)) if len(right_ways(p.meta["numbers"], p.meta["target"], "+-")) > 2)
    ways = [way.text for way in right_ways(problem.meta["numbers"], problem.meta["target"], "+-")]
    said = Counter(task.demonstrate(problem, random.Random(i)) for i in range(400))
    assert set(said) == set(ways)
    assert said[ways[0]] / 400 == pytest.approx(0.9, abs=0.05)
    numbers = sorted(problem.meta["numbers"])
    assert ways[0].startswith(str(numbers[-1]))


@pytest.mark.slow
def test_a_biased_searcher_is_wrong_where_it_searches_most_often_too():
    task = registry.task("facts:hops=4,error=0.5,biased=0.75", test_size=1)
    asked = Counter()
    for i in range(400):
        problem = task.train[i]
        first = task.demonstrate(problem, random.Random(i))[0]
        asked[problem.meta["searches"][0].split()[1], first.removeprefix("Search: ").split()[-1]] += 1
    # "Who is the neighbour of ...?" is looked up as a friend most of the times
    assert asked["neighbour", "friend"] > 2 * asked["neighbour", "neighbour"] > 0
    assert asked["friend", "friend"] > 5 * asked["friend", "neighbour"]
