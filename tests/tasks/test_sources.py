"""Held-out problems are made when they are asked for, no more than that, and are the same however they are asked for."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from rewardlab import registry
from rewardlab.core import Problem, ask
from rewardlab.errors import RewardlabError
from rewardlab.tasks import sources
from rewardlab.tasks.sources import OnDemand, changed, held_out

MADE: list[int] = []


def numbers(n: int):
    for i in range(n):
        MADE.append(i)
        yield ask(str(i), i)


@pytest.fixture
def ten() -> OnDemand:
    MADE.clear()
    return OnDemand(partial(numbers, 10))


def answers(problems) -> list[int]:
    return [p.answer for p in problems]


def test_no_more_is_made_than_is_asked_for(ten):
    assert MADE == []
    assert answers(ten[:3]) == [0, 1, 2]
    assert ten[1].answer == 1
    assert MADE == [0, 1, 2]
    assert bool(ten)
    assert answers(ten[2:7:2]) == [2, 4, 6]
    assert list(range(7)) == MADE
    assert len(ten) == 10
    assert answers(ten) == MADE == list(range(10))


@pytest.mark.parametrize("at", [slice(-3, None), slice(None, -2), slice(None, None, -1), slice(8, 3, -2), slice(4, 99), slice(0)])
def test_it_is_sliced_as_a_list_is(at):
    assert answers(OnDemand(partial(numbers, 10))[at]) == list(range(10))[at]


def test_positions_from_the_end_and_beyond_it(ten):
    assert ten[-1].answer == 9
    with pytest.raises(IndexError):
        ten[10]
    assert not OnDemand(partial(numbers, 0))


def test_it_equals_the_same_problems_and_is_pickled_without_them(ten):
    again = pickle.loads(pickle.dumps(ten))
    assert MADE == []
    assert again == ten == [ask(str(i), i) for i in range(10)]
    assert ten != OnDemand(partial(numbers, 9))


def test_a_changed_list_is_made_as_far_as_it_is_asked_for(ten):
    twice = changed(ten, lambda p: ask(p.question, 2 * p.answer))
    assert answers(twice[:2]) == [0, 2]
    assert MADE == [0, 1]
    assert len(twice) == 10


def test_of_few_problems_each_is_held_out_once_and_the_first_do_not_depend_on_how_many_are_asked_for():
    def die(rng) -> Problem:
        return ask(f"Roll {rng.randrange(500)}")

    whole = sources.test_set(die, ("die",), 1000)
    expected = {ask(f"Roll {i}").key for i in range(500) if held_out(ask(f"Roll {i}"))}
    assert {p.key for p in whole} == expected
    assert len(whole) == len(expected) < 100
    assert sources.test_set(die, ("die",), 5) == whole[:5]
    with pytest.raises(RewardlabError, match="test_size must be at least 1, not 0"):
        sources.test_set(die, ("die",), 0)


@pytest.mark.parametrize("name", ["arithmetic", "notes", "domains", "versatile", "poor_tests", "formal"])
def test_a_task_is_made_without_its_held_out_problems(name):
    """A change of problems of another task is as lazy as the problems themselves."""
    test = registry.task(name).test
    assert repr(test) == "OnDemand(0 problems made so far)"
    assert [p.key for p in test[:3]] == [p.key for p in registry.task(name, test_size=4).test][:3]
    assert repr(test) == "OnDemand(3 problems made so far)"
