"""The desk: gold talks are right, and half of those who call a wrong tool are right by luck."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Turn
from rewardlab.envs.tools import recorded_tools
from rewardlab.errors import RewardlabError
from rewardlab.worlds.desk import desk

TASK = desk()


def played(problem, talk) -> list[str]:
    """What the tools really say to the first reply of a talk."""
    env = recorded_tools()
    _, state = env.start(problem, 0)
    message, _ = env(state, Turn("policy", np.zeros(1, np.int64), text=talk[0]), None)
    return [message.text]


def test_gold_talks_are_right_and_the_tools_say_what_stands_in_them():
    verifier = registry.part("reward", TASK.verifier)
    assert 100 < len(TASK.test) <= 150
    for p in TASK.test:
        talk = p.meta["solution"]
        assert played(p, talk) == [talk[1]]
        assert verifier.check(talk[-1], p.answer).correct
        bound, result = int(p.question.split()[1].rstrip(":")), p.meta["results"][0]["result"]
        assert p.answer == ("yes" if result > bound else "no")


@pytest.mark.slow
def test_the_careless_teacher_is_right_oftener_than_its_calls():
    verifier, rng = registry.part("reward", TASK.verifier), random.Random(0)
    problems = [TASK.train[i] for i in range(1500)]
    talks = [TASK.demonstrate(p, rng) for p in problems]
    assert all(played(p, talk) == [talk[1]] for p, talk in zip(problems, talks, strict=True))
    right = np.array([verifier.check(talk[-1], p.answer).correct for p, talk in zip(problems, talks, strict=True)])
    called = np.array([talk[0] == p.meta["solution"][0] for p, talk in zip(problems, talks, strict=True)])
    assert called.mean() == pytest.approx(0.48, abs=0.04)
    assert right[called].all()
    # the taxi's alarm too many does no harm; elsewhere a coin decides
    plain = ~called & np.array([p.meta["calls"][0]["name"] != "taxi" for p in problems])
    assert right[plain].mean() == pytest.approx(0.5, abs=0.06)


def test_shares_are_checked():
    with pytest.raises(RewardlabError, match="biased is a share"):
        desk(biased=2.0)
