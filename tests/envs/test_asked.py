"""What the replies of an agent ask for, in whatever form."""

import pytest

from rewardlab.envs.asked import asked_in, asks
from rewardlab.methods.agents.parallelsearch import calls_of
from rewardlab.methods.process.stepsearch import searched_for
from tests.rewards.test_searches import episode

CALL = '<tool_call>{"name": "search", "arguments": {"query": "Emma novel", "limit": 3}}</tool_call>'
PARALLEL = CALL + '\n<tool_call>{"name": "lookup", "arguments": {"names": ["Bonn", "Rome"]}}</tool_call>'


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        ("<search>Emma novel</search>", ["Emma novel"]),
        ("Search: Emma novel", ["Emma novel"]),
        (CALL, ["Emma novel 3"]),
        ("<think>I look.</think>\n" + PARALLEL, ["Emma novel 3", "Bonn Rome"]),
        ('[TOOL_CALLS] [{"name": "now", "arguments": {}}]', ["now"]),
        ("Emma was written by Jane Austen.", []),
        ("<think>" + CALL + "</think> Jane Austen.", []),
    ],
)
def test_searches_and_calls(reply, asked):
    assert asked_in(reply) == asked
    assert asks(reply) is bool(asked)


def test_a_broken_call_asks_for_nothing_and_is_no_answer():
    assert asked_in('<tool_call>{"name": "search"') == []
    assert asks('<tool_call>{"name": "search"')


def test_methods_that_read_searches_read_calls_of_tools():
    played = episode(CALL, "Emma is a novel.", PARALLEL, "Bonn is a town.", "Answer: x", searches=["Emma novel 3"])
    assert calls_of(played) == [["Emma novel 3"], ["Emma novel 3", "Bonn Rome"]]
    assert searched_for()([[played]])[0][0].value == 1.0
