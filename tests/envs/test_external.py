"""Environments in a Python file of the user's own."""

import pytest

from rewardlab.core import Turn, ask
from rewardlab.registry.formula import read_environment

MINE = """
from rewardlab.core import Message, environment


def logged(episodes, times):
    return {"played": len(episodes) * times}


@environment(start=lambda problem, seed, times: (None, 0), waits=True, logged=logged)
def mine(state, turn, *, times=2):
    return Message("user", "more", last=state + 1 == times), state + 1


@environment(start=lambda problem, seed: (None, 0))
def plain(state, turn):
    return None, state
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


def test_what_an_environment_of_the_users_own_says_of_itself_holds(file):
    env = read_environment(f"{file}:mine(times=3)")
    assert env.waits
    assert env.logged(["an episode", "another"]) == {"played": 6}
    message, state = env(env.start(ask("?"), 0)[1], Turn("policy", None, text="hello"))
    assert (message.text, message.last, state) == ("more", False, 1)
    plain = read_environment(f"{file}:plain")
    assert not plain.waits
    assert plain.logged(["an episode"]) == {}
