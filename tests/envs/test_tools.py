"""Tools that answer what a conversation has recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Turn, ask
from rewardlab.envs.tools import recorded_tools
from rewardlab.errors import RewardlabError
from rewardlab.text.tool_calls import answer_to, calls_in

RESULTS = [
    {"name": "bus", "arguments": {"city": "Rome", "day": 3}, "result": 7},
    {"name": "mail", "parameters": {"person": "Ann"}, "result": "sent"},
]


def tagged(*lines: str) -> str:
    return "\n".join(["<think>hm</think>", "<tool_call>", *lines, "</tool_call>"])


def said(text: str, results=RESULTS) -> str | None:
    env = recorded_tools()
    _, state = env.start(ask("?", "yes", results=results), 0)
    message, _ = env(state, Turn("policy", np.zeros(1, np.int64), text=text), None)
    return None if message is None else message.text


def test_a_call_gets_the_result_that_was_recorded_for_just_it():
    assert said(tagged('{"name": "bus", "arguments": {"day": 3, "city": "Rome"}}')) == "bus: 7"
    both = '{"name": "mail", "arguments": {"person": "Ann"}}', '{"name": "bus", "parameters": {"city": "Oslo", "day": 3}}'
    assert said(tagged(*both)) == "mail: sent\nbus: no result"
    assert said(tagged('{"name": "train", "arguments": {}}'), json.dumps(RESULTS)) == "train: no result"
    # 3 and true are no names of days that were recorded
    assert said(tagged('{"name": "bus", "arguments": {"city": "Rome", "day": true}}')) == "bus: no result"


def test_a_long_result_is_cut_and_says_so():
    call = {"name": "bus", "arguments": {}}
    assert said(tagged(json.dumps(call)), [{**call, "result": "x" * 5000}]) == f"bus: {'x' * 4000} ... (1000 more characters)"


@pytest.mark.parametrize(
    "text", [tagged("{"), tagged(), tagged("3"), tagged('{"name": 3}'), '<tool_call>{"name": "bus"}', tagged("[]"), "<tool_call>"]
)
def test_calls_that_cannot_be_read_are_told_so(text):
    assert said(text) == "The calls cannot be read."
    assert calls_in(text) is None


def test_a_reply_without_calls_is_final():
    assert said("<think>7 > 5</think>\nAnswer: yes") is None
    # what is only thought calls nothing
    assert said(f"<think>{tagged('{}').removeprefix('<think>hm</think>')}</think>\nAnswer: yes") is None


def test_calls_are_read_one_a_tag_or_one_a_line_or_over_several_lines():
    one = '{"name": "a"}'
    assert calls_in(f"<tool_call>{one}</tool_call> and <tool_call>{one}</tool_call>") == [("a", {})] * 2
    assert calls_in(tagged(one, one)) == [("a", {})] * 2
    assert calls_in(tagged('{"name": "a",', '"arguments": {"x": 1}}')) == [("a", {"x": 1})]
    assert answer_to([], RESULTS) == answer_to(None, RESULTS) == "The calls cannot be read."


def test_where_no_call_is_wanted_none_need_be_recorded():
    assert said("Answer: yes", []) is None
    assert said(tagged('{"name": "bus"}'), []) == "bus: no result"


@pytest.mark.parametrize("results", [None, [3], "[3]", [{"result": 3}], {"bus": 7}])
def test_results_that_are_none_are_an_error_that_names_the_problem(results):
    with pytest.raises(RewardlabError, match=r"recorded_tools needs in 'results' of problem '\?'"):
        said("Answer: yes", results)
