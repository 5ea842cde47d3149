"""Labels of real solutions, by the numbers of a published one."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.tasks.gsm8k_solutions import step_labels

QUESTION = "A box has 6 eggs and costs $3. What do 4 boxes cost, of which one is half price?"
WORKED = ["Three boxes cost 3 * 3 = $<<3*3=9>>9", "Half price is 3 / 2 = $<<3/2=1.5>>1.50", "In all 9 + 1.5 = $<<9+1.5=10.5>>10.50"]


def labels(*steps):
    return step_labels(steps, WORKED, QUESTION, right=False)


def test_a_wrong_solution_is_right_up_to_the_last_number_that_the_worked_one_has():
    assert labels("Three cost <<3*3=9>>9", "Half is <<3-2=1>>1", "In all <<9+1=10>>10", "A: 10") == [1, 0, 0, 0]
    # a step of its own before one that the worked solution has, is on the way
    assert labels("Four cost <<4*3=12>>12", "One is half: <<3/2=1.50>>1.50", "So <<12+1.5=13.5>>13.5", "A: 13.5") == [1, 1, 0, 0]


def test_numbers_of_the_question_say_nothing():
    # 3 and 6 are given; 4 * 6 eggs lead nowhere
    assert labels("There are <<4*6=24>>24 eggs", "One costs <<6-3=3>>3", "A: 3") == [0, 0, 0]


def test_the_last_step_states_the_wrong_answer():
    assert labels("Three cost <<3*3=9>>9", "In all <<9+1.5=10.5>>10.5") == [1, 0]


def test_all_steps_of_a_right_solution_are_right():
    assert step_labels(["<<1+1=2>>2", "A: 10.5"], WORKED, QUESTION, right=True) == [1, 1]


def test_the_problems_of_processbench_are_held_out():
    task = registry.task("gsm8k_solutions")
    try:
        held_out = task.test[:10]
    except RewardlabError as missing:
        pytest.skip(str(missing))
    assert [len(p.meta["labels"]) == len(p.meta["steps"]) for p in held_out] == [True] * 10
    # a solution that people labelled, and four of which it is known whether they are right
    assert ["right" in p.meta for p in held_out[:5]] == [False, True, True, True, True]
    assert all(label is None for p in held_out[1:5] for label in p.meta["labels"])
    assert len({p.question for p in held_out[1:5]}) == 1
    learnt = task.train.problems
    assert len(learnt) % 4 == 0
    assert len(learnt) > 3000
    assert not {p.question for p in task.test} & {p.question for p in learnt}
