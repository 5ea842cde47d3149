"""What verifiers say of gold answers and replies that they cannot read: in words, with the place, the same in every run."""

from __future__ import annotations

import re

import pytest

from rewardlab import registry
from rewardlab.backends.reward_functions import as_trl_reward
from rewardlab.errors import RewardlabError
from rewardlab.verifiers.calls.verifier import function_calls
from rewardlab.verifiers.instructions.verifier import instructions
from rewardlab.verifiers.sql.verifier import sql

PYTHONS = re.compile(
    r"indices must be|object is not|has no attribute|at 0x[0-9a-f]{6}|NoneType|unexpected keyword|positional argument|TypeError"
    r"|KeyError|AttributeError|not iterable|not subscriptable|unsupported operand|expected str instance"
    r"|'str' object|unhashable|to unpack"
)
"""What Python says to programmers."""
ODD = [
    None, "", "x", 7, 1.5, True, [], {}, "[]", "{}", ["a"], [{"a": 1}], {"a": 1}, {"tests": ["a"]}, {"query": 5, "database": "x"},
    {"answer": "A", "options": 5}, {"answer": ["A", None], "options": ["a", "b"]}, {"instructions": "abc"},
    {"instructions": ["abc"]}, {"instructions": [5]}, {"instruction_id_list": "abc", "kwargs": "abc"},
    {"instruction_id_list": ["punctuation:no_comma"]},
    {"instruction_id_list": ["punctuation:no_comma"], "kwargs": ["a"]}, {"calls": "x"}, {"tools": "x"}, {"tools": ["x"]},
    {"tools": [{"name": "f", "parameters": "x"}], "calls": []}, {"tools": [{"name": "f", "parameters": {"properties": "x"}}]},
    [{"function": "f"}], {"sources": ["a"], "required": "x"}, {"relevant": "x", "documents": "y"}, {"schema": 5, "value": 1},
    {"x": ["a"]}, object(), {1, 2}, b"x", {"a": object()}, [object()], print, lambda x: x,
]  # fmt: skip
SLOW = ("judged_answer", "code", "web_page", "verilog", "method_contract", "list_program", "boolean_query")


@pytest.mark.parametrize("name", sorted(set(registry.verifiers()) - set(SLOW)))
def test_no_reason_is_in_the_words_of_python(name):
    judge = registry.verifier(name)
    for reply in ("x", "```json\n[1]\n```", '{"a": 1}', "<answer>A</answer>"):
        for gold, verdict in zip(ODD, judge.check_all([(reply, gold) for gold in ODD]), strict=True):
            assert not PYTHONS.search(verdict.why), (gold, verdict.why)


@pytest.mark.parametrize(
    ("gold", "says"),
    [
        ("", "'' is no object with `instructions`"),
        (7, "'7' is no object with `instructions`"),
        ({"a": 1}, "there are no `instructions` in"),
        ({"instructions": "abc"}, "`instructions` is no list but 'abc'"),
        ({"instructions": [{"id": "punctuation:no_comma"}, "abc"]}, "`instructions[1]` is no object with an `id` but 'abc'"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": ["a"]}, "`kwargs[0]` is no object of arguments but 'a'"),
    ],
)
def test_instructions_that_cannot_be_read_are_named_by_place(gold, says):
    found = instructions().check("x", gold)
    assert found.correct is None
    assert says in found.why


def test_instructions_may_be_a_list_and_without_arguments():
    rows = [{"id": "punctuation:no_comma"}]
    assert instructions().check("x", rows).correct is True
    assert instructions().check("x, y", {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [None]}).correct is False


def test_where_an_object_lies_is_in_no_reason():
    class Mine:
        pass

    first, second = (registry.verifier("exact_match").check("x", Mine()).why for _ in range(2))
    assert first == second
    tests = "assert f(1) == f(2)"
    found = registry.verifier("code").check("class A: pass\ndef f(x): return A()", {"tests": tests})
    assert "0x" not in found.why


GOLD = {"query": "SELECT a FROM t", "database": "CREATE TABLE t(a INT); INSERT INTO t VALUES (1);"}


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("```\nSELECT a FROM t\n```", True),
        ("Here:\n```\nSELECT a FROM t\n```\nDone.", True),
        ("~~~sql\nSELECT a FROM t\n~~~", True),
        ("~~~\nselect a from t\n~~~", True),
        ("1. Use\n   ```\n   SELECT a FROM t\n   ```", True),
        ("```postgresql\nSELECT a FROM t\n```", True),
        ("```sqlite3\nSELECT a FROM t;\n```", True),
        ("```\nWITH x AS (SELECT a FROM t) SELECT a FROM x\n```", True),
        ("```\n-- all of them\nSELECT a FROM t\n```", True),
        ("```\nSELECT a FROM t\n```\nIt gives\n```\n1\n```", True),
        ("```\nt(a)\n```\n```sql\nSELECT a FROM t\n```", True),
        ("```\nSELECT a FROM t\n```\nor\n```\nSELECT 2\n```", False),
        ("```sql\nSELECT 2\n```\n```\nSELECT a FROM t\n```", False),
        ("```\nDELETE FROM t\n```", False),
        ("```\n1\n```", False),
    ],
)
def test_a_query_in_a_plain_fence_is_read(reply, right):
    pytest.importorskip("sqlglot", reason="needs the extra 'verify'")
    assert sql().check(reply, GOLD).correct is right


def test_calls_of_tools_in_a_message_are_what_it_says():
    gold = [{"name": "f", "arguments": {"x": 1}}]
    for arguments in ({"x": 1}, '{"x": 1}'):
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        for content in (None, "", "Let me see."):
            said = [[{"role": "assistant", "content": content, "tool_calls": [call]}]]
            assert function_calls().trl()(completions=said, answer=[gold]) == [1.0]
            reward = as_trl_reward(registry.part("reward", "correct"), function_calls())
            assert reward([[{"role": "user", "content": "q"}]], said, answer=[gold]) == [1.0]
            other = [[{**said[0][0], "tool_calls": [{**call, "function": {"name": "g", "arguments": arguments}}]}]]
            assert reward(["q"], other, answer=[gold]) == [0.0]


@pytest.mark.parametrize(
    ("prompt", "completion", "says"),
    [
        (["q"], "a", "message 1 of a prompt is 'q'; it must have 'role' and 'content'"),
        ([{"role": "user", "content": "q"}, None], "a", "message 2 of a prompt is None"),
        ("q", [{"content": "a"}], "message 1 of a completion is {'content': 'a'}"),
        ("q", [{"role": "model", "content": "a"}], "a completion has no message of 'assistant': its roles are 'model'"),
        ("q", 5, "a completion is a text or a list of messages, not 5"),
    ],
)
def test_messages_that_are_none_are_named_by_place(prompt, completion, says):
    reward = as_trl_reward(registry.part("reward", "correct"), registry.part("reward", "exact_match"))
    with pytest.raises(RewardlabError, match=re.escape(says)):
        reward([prompt], [completion], answer=["a"])
