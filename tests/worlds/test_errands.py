"""Errands: what the shop hands out, says at the end and pays, and how often the careless agent gets all right."""

from __future__ import annotations

import random

import pytest

from rewardlab.core import Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.worlds.errands import CONFUSED, errands, shop


def played(wanted, replies):
    env, said = shop(), []
    _, state = env.start(ask("?", things=wanted), 0)
    for reply in replies:
        message, state = env(state, Turn("policy", (), text=reply))
        said.append((message.text, message.reward, message.last))
    return said


def test_the_shop_hands_out_what_is_asked_for_and_tells_it_as_an_errand():
    wanted = ["red hat", "blue bag"]
    assert played(wanted, ["red hat", "blue bag"]) == [
        ("Here is a red hat.", None, False),
        ("Get a red hat, a blue bag.", 1.0, True),
    ]
    assert played(wanted, ["A brown hat, please.", "blue bag"])[-1] == ("Get a brown hat, a blue bag.", 0.0, True)
    assert played(wanted, ["blue bag", "red hat"])[-1] == ("Get a blue bag, a red hat.", 0.0, True)
    assert played(wanted, ["tea", "blue bag"]) == [
        ("There is no such thing.", None, False),
        ("Get a tea, a blue bag.", 0.0, True),
    ]
    with pytest.raises(RewardlabError, match="things"):
        shop().start(ask("?"), 0)


def test_the_prompt_is_what_the_shop_would_tell_of_the_right_way():
    problem = errands(size=1).train[0]
    assert played(problem.meta["things"], problem.meta["solution"][::2])[-1] == (problem.question, 1.0, True)


def test_the_agent_mostly_takes_a_confused_colour_for_the_other():
    task, asked = errands(), []
    for i in range(400):
        problem = task.train[i]
        talk = task.demonstrate(problem, random.Random(i))
        asked += zip(problem.meta["things"], talk[::2], strict=True)
    confused = [(a.split()[0], b.split()[0]) for a, b in asked if a.split()[0] in CONFUSED]
    others = [a == b for a, b in asked if a.split()[0] not in CONFUSED]
    # 60% biased, and of the rest a tenth that slip, a fifth of those to the same colour
    assert sum(CONFUSED[a] == b for a, b in confused) / len(confused) == pytest.approx(0.608, abs=0.06)
    assert sum(others) / len(others) == pytest.approx(0.9, abs=0.03)
