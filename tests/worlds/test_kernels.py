"""The world of programs to be made faster: who is paid for what."""

import random

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.tasks.programs import parse, run
from rewardlab.worlds.kernels import FOLDED, SAME, WORTH, fast_program, judge, kernels, speedup, work_share
from rewardlab.worlds.kernels import cost_feedback as machine

# f; g on [3, 1]: (1 + 2) + (1 + 2) for f, 1 + 2 * 2 and 1 + 1 for g
GIVEN = {"library": {"f": "+ 1; + 2", "g": "sort; last"}, "inputs": [[3, 1]], "outputs": [6], "cost": 13}


def episode(*replies):
    problem = ask("faster?", "+ 3; max", **GIVEN)
    turns = [Turn(None, np.zeros(2, np.int64))]
    for text in replies:
        turns += [Turn("policy", np.zeros(3, np.int64), text=text), Turn(None, np.zeros(1, np.int64))]
    return Trajectory(problem, tuple(turns), "end")


@pytest.mark.parametrize(
    ("text", "right", "operations", "own"),
    [
        ("f; g", True, 13, 0.0),
        ("+ 3; g", True, 3 + 7, 3 / 10),
        ("f; max", True, 6 + 3, 3 / 9),
        ("+ 3; max", True, 6, 1.0),
        ("+ 3; min", False, 0, 0.0),
        ("h; g", False, 0, 0.0),
    ],
)
def test_a_program_is_judged_by_what_it_gives_and_what_it_costs(text, right, operations, own):
    judged = judge(text, GIVEN)
    assert (judged.right, judged.operations) == (right, operations)
    assert judged.own == pytest.approx(own)
    assert judged.speedup == pytest.approx(13 / operations if right else 0.0)


def test_each_turn_is_paid_for_its_own_program():
    rows = [[episode("f; g", "+ 3; min", "+ 3; max")]]
    fast, own = speedup(max_speedup=2.0)(rows)[0][0], work_share()(rows)[0][0]
    assert fast.steps == ((4, 1.0), (8, 0.0), (12, 2.0))  # 13 / 6 is more than 2
    assert own.steps == ((4, 0.0), (8, 0.0), (12, 1.0))


def test_the_last_program_counts_or_the_best():
    rows = [[episode("+ 3; max", "f; g")]]
    assert fast_program()(rows)[0][0].value == 0.0
    assert fast_program(best=True)(rows)[0][0].value == 1.0
    assert fast_program()([[episode()]])[0][0].value == 0.0


def test_the_machine_says_what_a_program_costs_and_ends_with_what_is_none():
    env = machine()
    _, state = env.start(episode().problem, 0)
    assert env(state, Turn("policy", np.zeros(1), text="+ 3; g"))[0].text == "Right: 10 of 13 operations, 30% own."
    assert env(state, Turn("policy", np.zeros(1), text="+ 3; min"))[0].text == "Wrong: gives 4, not 6."
    assert env(state, Turn("policy", np.zeros(1), text="hello"))[0] is None
    with pytest.raises(RewardlabError, match="needs library"):
        env.start(ask("?"), 0)


def test_what_should_be_the_same_is_the_same_and_no_slower():
    rng = random.Random(0)
    for slow, fast in (*SAME, *FOLDED):
        for _ in range(50):
            x = [rng.randint(-9, 9) for _ in range(rng.randint(0, 9))]
            a, b = run(parse(slow), x), run(parse(fast), x)
            assert a.value == b.value, (slow, fast, x)
            assert b.operations <= a.operations


def test_gold_gets_full_marks_and_what_is_lazy_or_wrong_none():
    for problem in kernels(test_size=100).test:
        first, second = problem.meta["parts"]
        marks = {x: fast_program()([[row(problem, x)]])[0][0].value for x in (problem.answer, "f; g", f"{first}; {second}; + 1")}
        assert marks == {problem.answer: 1.0, "f; g": 0.0, f"{first}; {second}; + 1": 0.0}
        assert judge(problem.answer, problem.meta).speedup >= WORTH


def row(problem, text):
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_the_teacher_gets_better_with_every_turn_and_is_not_always_right():
    task, rng = kernels(test_size=1), random.Random(0)
    shown = [(p, task.demonstrate(p, rng)) for p in (task.train[i] for i in range(200))]
    rate = [np.mean([judge(said[k], p.meta).speedup >= 2 for p, said in shown]) for k in (0, 2, 4)]
    assert rate[0] < rate[1] < rate[2] < 0.9
    assert all(said[1] == str(judge(said[0], p.meta)) for p, said in shown)
    careful = kernels(test_size=1, error=0.0)
    assert all(careful.demonstrate(p, rng)[0] == p.answer for p, _ in shown)


@pytest.mark.parametrize("wrong", [{"inputs": 0}, {"length": 2}, {"error": -1.0}])
def test_worlds_that_cannot_be_are_refused(wrong):
    with pytest.raises(RewardlabError, match="between"):
        kernels(**wrong)
