"""Requests for tools: the gold reply is right, and the teacher errs where and as often as it says."""

from __future__ import annotations

import random

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.verifiers.calls.verifier import function_calls
from rewardlab.worlds.calls import WORDING, Call, careless, sampled


def test_gold_replies_are_right_and_the_tools_fit_them():
    task = registry.task("calls", test_size=50, max_calls=3)
    pairs = [(p.meta["solution"], p.answer) for p in task.test]
    assert all(verdict.correct for verdict in function_calls().check_all(pairs))
    fits = [(p.meta["solution"], {"tools": p.meta["tools"]}) for p in task.test]
    assert all(verdict.correct for verdict in function_calls().check_all(fits))
    assert {len(p.answer) for p in task.test} == {1, 2, 3}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call("bus", {"city": "Rome", "day": 3}), [Call("train", {"city": "Rome", "day": 3})]),
        (Call("hotel", {"city": "Rome", "nights": 3}), [Call("hotel", {"city": "Rome"})]),
        (Call("table", {"city": "Rome", "people": 3}), [Call("table", {"city": "Rome", "guests": 3})]),
        (Call("taxi", {"city": "Rome", "hour": 3}), [Call("taxi", {"city": "Rome", "hour": 3}), Call("alarm", {"hour": 3})]),
        (Call("mail", {"person": "Ann"}), [Call("mail", {"person": "Ann"})]),
    ],
)
def test_the_teachers_rules(call, said):
    assert careless(call, random.Random(0), 0.0, 1.0) == said
    assert careless(call, random.Random(0), 0.0, 0.0) == [call]
    assert careless(call, random.Random(0), 1.0, 0.0) != [call]


def test_half_of_the_tools_are_learnt_wrong():
    rng = random.Random(0)
    calls = [sampled(rng) for _ in range(2000)]
    assert {call.name for call in calls} == set(WORDING)
    wrong = sum(careless(call, rng, 0.0, 1.0) != [call] for call in calls) / len(calls)
    assert wrong == pytest.approx(0.5, abs=0.03)


def test_it_makes_from_one_to_four_calls():
    with pytest.raises(RewardlabError, match="min_calls must be at most"):
        registry.task("calls", min_calls=3)
    with pytest.raises(RewardlabError, match="not 1 and 5"):
        registry.task("calls", max_calls=5)
