"""Rewards that are asked only where the prompt calls for them."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.methods.verifiers.rewardagent import routed
from rewardlab.rewards.reward import reward

WHEN = "at most|exactly"


def reply(text: str, prompt: str) -> Trajectory:
    return Trajectory(ask(prompt), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


CALLS: list[int] = []


@reward(over="groups")
def counted(groups):
    CALLS.append(len(groups))
    return [[Score(None, why="down") if t.reply == "?" else 1.0 for t in group] for group in groups]


def test_the_router_asks_only_where_the_prompt_calls_for_it():
    CALLS.clear()
    run = Run(None)
    groups = [
        [reply("a", "Use at most 3 words.")],
        [reply("a", "Say hello.")],
        [reply("?", "At MOST one line."), reply("b", "At MOST one line.")],
    ]
    found = routed(to=counted(), when=WHEN)(groups, run)
    assert [[s.value for s in row] for row in found] == [[1.0], [0.5], [0.5, 1.0]]
    assert CALLS == [2]
    assert run.metrics["routed/counted"] == pytest.approx(2 / 3)
    assert routed(to=counted(), when="never")(groups, run)[0][0].value == 0.5
    assert CALLS == [2]
    with pytest.raises(Exception, match="not a regular expression"):
        routed(to=counted(), when="(")(groups, run)
