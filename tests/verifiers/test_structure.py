"""Verifiers of form: JSON, schemas, tags, calls, citations; and that no reply, however hostile, passes, hangs or breaks them."""

from __future__ import annotations

import json
import re
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.rewards.format import format_ok
from rewardlab.text import strict_json
from rewardlab.text.blocks import last_block
from rewardlab.verifiers.calls.verifier import function_calls
from rewardlab.verifiers.citations import citations
from rewardlab.verifiers.structure.verifier import json_schema, json_value, tags

# no "<think>" and no fence within a text: there a reply's own structure wins
texts = st.text(alphabet=st.characters(exclude_characters="<`"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

HOSTILE = [
    "", " ", "[" * 100_000, '{"a":' * 100_000, "1" * 100_000, "9" * 5000 + ".0", "-" * 100_000, "```json\n" * 20_000, "f(" * 9_000,
    "<tool_call>" * 20_000, "<think>" * 20_000, "</answer>" * 20_000, "[1" * 50_000, '"' * 100_000, "“a" * 50_000,
    "f(x=" + "(" * 9_000, "f(x=" + "-" * 19_000 + "1)", "\x00", "\ud800", '"\\ud800"', "[1-9999]" * 10_000, "NaN", "é" * 1000,
    "f(x=" + "1+" * 9_000 + "1)",
    "f(x=" + "not " * 4_500 + "1)", 'f(x="' + "a" * 30_000 + '")', "f(x=" + "a." * 9_000 + "a)", "a if b else " * 1_500 + "a",
]  # fmt: skip
TOOL = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}, "pool": {"default": False}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
BOOK = {"name": "book", "arguments": {"city": "Oslo", "nights": 2}}
EVERY = [
    (json_value(), {"a": 1}), (json_schema(), {"type": "object"}), (tags(), None), (function_calls(), BOOK),
    (function_calls(), {"tools": [TOOL]}), (citations(), {"sources": ["one", "two"], "required": [1]}),
    (citations(quotes=True), {"sources": ["one", "two"]}),
]  # fmt: skip


@pytest.mark.parametrize(("verifier", "gold"), EVERY, ids=lambda x: str(x)[:20])
def test_no_hostile_reply_passes_breaks_or_hangs(verifier, gold):
    start = time.perf_counter()
    verdicts = verifier.check_all([(text, gold) for text in HOSTILE])
    assert [v.correct for v in verdicts] == [False] * len(HOSTILE), [v for v in verdicts if v.correct is not False]
    assert all(v.why and "broke" not in v.why for v in verdicts)
    assert time.perf_counter() - start < 10.0


# ---- JSON ------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(values)
def test_a_gold_value_passes_however_it_is_written(value):
    text = json.dumps(value)
    assert json_value().check(text, text).correct
    assert json_value().check(f"Here:\n```json\n{json.dumps(value, indent=1, ensure_ascii=False)}\n```", text).correct
    assert json_value().check(f"<think>{text}</think>{text}", text).correct
    assert json_value().check(json.dumps([value]), text).correct is False
    assert json_value().check(text[:-1] + ",", text).correct is False


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ('{"b": 2.0, "a": 1}', {"a": 1, "b": 2}, True),
        ('{"a": true}', {"a": 1}, False),
        ("1", [1], False),
        ('"1"', 1, False),
        ("0", False, False),
        ("null", "0", False),
        ("[1, 2]", [2, 1], False),
        ('{"a": 1, "a": 1}', {"a": 1}, False),
        ('{"a": 1,}', {"a": 1}, False),
        ("{'a': 1}", {"a": 1}, False),
        ('{"a": 1} {"a": 1}', {"a": 1}, False),
        ('{"a": 1} // so', {"a": 1}, False),
        ("NaN", "1", False),
        ("1e400", "1e308", False),
        ('```json\n{"a": 2}\n```\n```json\n{"a": 1}\n```', {"a": 1}, True),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', {"a": 1}, False),
        ('<think>{"a": 1}</think>', {"a": 1}, False),
        ('<think>{"a": 1}', {"a": 1}, False),
    ],
)
def test_json_is_read_strictly(reply, gold, right):
    assert json_value().check(reply, gold).correct is right


def test_a_gold_answer_that_is_no_json_gives_no_verdict():
    for gold in (None, "{", '{"a": 1, "a": 2}', "[" * 200 + "]" * 200):
        assert json_value().check("1", gold).correct is None
    assert json_schema().check("1", {"type": "no such type"}).correct is None
    assert json_schema().check("1", {"$ref": "#/nowhere"}).correct is None
    assert json_schema().check("1", {"$ref": "http://127.0.0.1:9/schema.json"}).correct is None
    assert json_schema().check("1", {"$ref": "#"}).correct is None
    assert json_schema().check("1", [1]).correct is None


def test_json_is_read_in_answer_tags_and_around_fences_in_its_texts():
    gold = {"code": "```python\nx = 1\n```", "tag": "<answer>a</answer>"}
    text = json.dumps(gold)
    for reply in (text, f"```json\n{text}\n```", f"Here:\n```\n{text}\n```\nDone."):
        assert json_value().check(reply, gold).correct, reply
    assert json_value().check('<think>x</think><answer>\n{"a": 1}</answer>', {"a": 1}).correct
    # the last block is still the one that counts, and what it holds is not made right by another one
    two = f"```json\n{text}\n```\nno:\n```json\n{{}}\n```"
    assert not json_value().check(two, gold).correct
    assert not json_value().check('<answer>{"a": 1}</answer> <answer>{}</answer>', {"a": 1}).correct


def test_json_must_fit_its_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    check = json_schema().check
    assert check('```json\n{"n": 3}\n```', schema).correct
    assert check('{"n": 3}', json.dumps(schema)).correct
    assert "at $.n: 'x' is not of type 'integer'" in check('{"n": "x"}', schema).why
    assert check('{"n": 3, "m": 1}', schema).correct is False
    assert check('{"n": 3}', {"schema": schema, "value": {"n": 3}}).correct
    assert check('{"n": 4}', {"schema": schema, "value": {"n": 3}}).correct is False
    assert check("null", {"schema": {}, "value": None}).correct
    assert check("0", {"schema": {}, "value": None}).correct is False
    assert json_schema(schema=schema).check('{"n": 4}', None).correct
    date = {"type": "string", "format": "date"}
    assert check('"2024-02-29"', date).correct
    assert check('"2023-02-29"', date).correct is False
    assert check('"soon"', date).correct is False
    assert json_schema(formats=False).check('"soon"', date).correct


def test_a_deep_value_fits_a_recursive_schema():
    tree = {"type": "array", "items": {"$ref": "#"}}
    assert json_schema().check("[" * 90 + "]" * 90, tree).correct
    assert json_schema().check("[" * 90 + "1" + "]" * 90, tree).correct is False
    assert json_schema().check("[" * 120 + "]" * 120, tree).correct is False


def test_a_pattern_of_a_schema_that_backtracks_without_end_is_cut_off_from_any_thread():
    schema, found = {"type": "string", "pattern": "^(a+)+$"}, []
    pairs = [(json.dumps("a" * 40 + "!"), schema), ('"aaa"', schema)]
    thread = threading.Thread(target=lambda: found.extend(json_schema(seconds=0.5).check_all(pairs)))
    thread.start()
    thread.join(20)
    assert [v.correct for v in found] == [False, True]
    assert "took over 0.5 s" in found[0].why


@settings(max_examples=40)
@given(values, values)
def test_equality_of_values_is_that_of_their_texts(a, b):
    assert strict_json.equal(a, strict_json.parse(json.dumps(a)))
    assert strict_json.equal(a, b) == strict_json.equal(b, a)
    assert not strict_json.equal([a], a)


def test_blocks():
    assert last_block("```sql\na\n```\n```py\nb\n```", "sql") == "a"
    assert last_block("```SQL\na\n```", "sql") == "a"
    assert last_block("```\na", "sql", "") == "a"
    assert last_block("a", "") is None


# ---- tags ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "prefilled", "says"),
    [
        ("<think>a</think><answer>b</answer>", None, ""),
        ("<think>a</think>\n<answer>b</answer>\n", False, ""),
        ("a</think><answer>b</answer>", None, ""),
        ("\na</think>\n<answer>b</answer>", True, ""),
        ("<think>a</think><answer>b</answer>", True, "<think> is written again"),
        ("a</think><answer>b</answer>", False, "<think> is missing"),
        ("<think>a</think>b", None, "<answer> is missing"),
        ("<think>a</think><answer>b", None, "</answer> is missing"),
        ("<think>a</think><answer>b</answer><answer>c</answer>", None, "<answer> occurs 2 times"),
        ("<answer>b</answer><think>a</think>", False, "out of order"),
        ("<answer>b</answer><think>a</think>", None, "<think> is missing|stands|out of order"),
        ("<think>a<answer>b</answer></think>", None, "out of order"),
        ("<think> </think><answer>b</answer>", None, "<think> is empty"),
        ("</think><answer>b</answer>", None, "<think> is empty"),
        ("<think>a</think><answer>\n</answer>", None, "<answer> is empty"),
        ("so <think>a</think><answer>b</answer>", None, "outside"),
        ("<think>a</think>so<answer>b</answer>", None, "outside"),
        ("<think>a</think><answer>b</answer>so", None, "outside"),
        ("<THINK>a</THINK><answer>b</answer>", None, "</think> is missing"),
        ("", None, "missing"),
    ],
)
def test_tags(reply, prefilled, says):
    found = tags(prefilled=prefilled).check(reply, None)
    assert found.correct is (not says)
    assert re.search(says or "well formed", found.why), found.why
    if not says:
        assert found.extracted == "b"


def test_tags_of_other_names_and_looser_forms():
    assert tags(names=["plan", "code", "answer"]).check("<plan>a</plan><code>b</code><answer>c</answer>", None).extracted == "c"
    assert tags(outside=True).check("so <think>a</think> then <answer>b</answer>.", None).correct
    assert tags(empty=True).check("<think></think><answer>b</answer>", None).correct
    assert tags(names=("a(b",)).check("", None).correct is None
    assert tags(names=("a", "a")).check("<a></a>", None).correct is None
    assert tags().trl()(completions=["<think>a</think><answer>b</answer>", "b"]) == [1.0, 0.0]


@given(st.text(alphabet="ab \n<>/think answer"))
def test_tags_around_any_text_without_tags_pass(text):
    clean = text.replace("<", "").replace(">", "") + "x"
    assert tags().check(f"<think>{clean}</think><answer>{clean}</answer>", None).correct
    assert tags().check(f"{clean}</think><answer>{clean}</answer>", None).correct
    assert tags().check(clean, None).correct is False


# ---- patterns --------------------------------------------------------------------------------------------------------


def test_a_pattern_is_cut_off_from_any_thread(monkeypatch):
    monkeypatch.setattr("rewardlab.rewards.format.SECONDS", 0.3)
    problem = ask("?", "x")
    group = [Trajectory(problem, (Turn("policy", [0], text=text),)) for text in ("a" * 60, "aab", "c")]
    found = []
    thread = threading.Thread(target=lambda: found.extend(format_ok(pattern="(a+)+b")([group, group[1:]])))
    thread.start()
    thread.join(20)
    assert [[score.value for score in row] for row in found] == [[0.0, 1.0, 0.0], [1.0, 0.0]]
    assert "took over" in found[0][0].why


# ---- calls -----------------------------------------------------------------------------------------------------------

MAIL = {"name": "mail.send", "arguments": {"to": ["a", "b"], "urgent": True, "note": None}}


def hermes(*calls) -> str:
    return "Let me see.\n" + "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def as_json(*calls) -> str:
    return f"```json\n{json.dumps(calls)}\n```"


def as_openai(*calls) -> str:
    wrapped = [{"type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}} for c in calls]
    return json.dumps({"tool_calls": wrapped})


def as_python(*calls) -> str:
    written = (f"{c['name']}({', '.join(f'{k}={v!r}' for k, v in c['arguments'].items())})" for c in calls)
    return f"[{', '.join(written)}]"


WAYS = [hermes, as_json, as_openai, as_python]


@pytest.mark.parametrize("write", WAYS)
def test_calls_are_a_multiset_however_they_are_written(write):
    gold, check = [BOOK, MAIL, BOOK], function_calls().check
    assert check(write(*gold), gold).correct
    assert check(write(MAIL, BOOK, BOOK), gold).correct
    assert check(write(MAIL, BOOK, BOOK), json.dumps(gold)).correct
    assert function_calls(ordered=True).check(write(*gold), gold).correct
    assert function_calls(ordered=True).check(write(MAIL, BOOK, BOOK), gold).correct is False
    for fewer_or_more in ([BOOK, MAIL], [MAIL, MAIL, BOOK], [*gold, MAIL], [BOOK]):
        assert check(write(*fewer_or_more), gold).correct is False
    assert check(write(*gold), []).correct is False
    assert check("<think>" + write(*gold) + "</think>", gold).correct is False


def test_calls_whose_arguments_hold_fences():
    calls = [{"name": "write", "arguments": {"text": "```py\nx = 1\n```"}}]
    for said in (calls, calls[0]):
        for reply in (
            json.dumps(said),
            f"```json\n{json.dumps(said)}\n```",
            f"I write:\n```json\n{json.dumps(said, indent=1)}\n```\n",
        ):
            assert function_calls().check(reply, calls).correct, reply
    assert not function_calls().check(f"```json\n{json.dumps(calls)}\n```", [{"name": "write", "arguments": {"text": "x"}}]).correct


def test_one_tag_may_hold_one_call_a_line():
    check, lines = function_calls().check, "\n".join(map(json.dumps, [BOOK, MAIL]))
    assert check(f"<tool_call>\n{lines}\n</tool_call>", [BOOK, MAIL]).correct
    assert check(f"<tool_call>\n{json.dumps(BOOK, indent=1)}\n</tool_call>", [BOOK]).correct
    # nothing may stand between them, and no line may hold two
    for other in (f"{lines}\nand more", lines.replace("\n", " "), f"[{lines}]", f"{lines}\n[]"):
        assert check(f"<tool_call>\n{other}\n</tool_call>", [BOOK, MAIL]).correct is False
    assert check(f"<tool_call>\n{lines}\n</tool_call></tool_call>", [BOOK, MAIL]).correct is False


def test_one_tag_may_hold_a_list_of_calls():
    check = function_calls().check
    for indent in (None, 1):
        assert check(f"<tool_call>\n{json.dumps([BOOK, MAIL], indent=indent)}\n</tool_call>", [BOOK, MAIL]).correct
    assert check(f"<tool_call>{json.dumps([BOOK])}</tool_call>\n<tool_call>{json.dumps(MAIL)}</tool_call>", [BOOK, MAIL]).correct
    twice = json.dumps([BOOK, MAIL]).replace('"name": ', '"name": "f", "name": ', 1)
    wrapped = json.dumps([{"tool_calls": [BOOK, MAIL]}])
    for other in ("[]", json.dumps([[BOOK, MAIL]]), json.dumps([BOOK, 1]), f"{json.dumps([BOOK, MAIL])} and more", twice, wrapped):
        assert check(f"<tool_call>{other}</tool_call>", [BOOK, MAIL]).correct is False


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex("[a-z]{1,5}", fullmatch=True), values, max_size=3), st.data())
def test_a_changed_argument_is_wrong(arguments, data):
    gold = {"name": "f", "arguments": arguments}
    write = data.draw(st.sampled_from([hermes, as_json, as_openai]))
    assert function_calls().check(write(gold), gold).correct
    changes = [{**arguments, "new": 1}, *({**arguments, name: [value]} for name, value in arguments.items())]
    for other in [{"name": "g", "arguments": arguments}, *({"name": "f", "arguments": change} for change in changes)]:
        assert function_calls().check(write(other), gold).correct is False


@pytest.mark.parametrize(
    "reply",
    [
        'book(city="Oslo", nights="2")', 'book(city="Oslo", nights=True + 1)', 'book(city="oslo", nights=2)', 'book("Oslo", 2)',
        'book(city="Oslo", nights=2); import os', 'print(book(city="Oslo", nights=2))', 'x = book(city="Oslo", nights=2)',
        'book(**{"city": "Oslo", "nights": 2})', 'book(city=open("/etc/passwd"), nights=2)',
        'book(city="Oslo", nights=2, city="Oslo")',
        '<tool_call>{"name": "book", "arguments": {"city": "Oslo", "nights": 2}}',
        '<tool_call>{"name": "book", "arguments": {"city": "Rome", "city": "Oslo", "nights": 2}}</tool_call>',
        '{"name": "book", "arguments": {"city": "Oslo", "nights": "2"}}', '{"name": "book", "arguments": ["Oslo", 2]}',
        '{"name": "book"}', 'I would call book(city="Oslo", nights=2).', "book", "[]", "{}",
    ],
)  # fmt: skip
def test_what_is_not_the_call_is_refused(reply):
    found = function_calls().check(reply, BOOK)
    assert found.correct is False
    assert found.why


def test_tools_give_arguments_their_places_and_defaults():
    check = function_calls().check
    gold = {"calls": [BOOK], "tools": [{"type": "function", "function": TOOL}]}
    assert check('book("Oslo", 2)', gold).correct
    assert check('book("Oslo", nights=2, pool=False)', gold).correct
    assert check('book("Oslo", 2, True)', gold).correct is False
    assert check('book("Oslo", 2, False, 1)', gold).correct is False
    assert check('book("Oslo", city="Oslo", nights=2)', gold).correct is False
    assert check('book("Oslo", 2)', [BOOK], tools=json.dumps([TOOL])).correct


def test_without_gold_calls_any_that_fit_the_tools_are_right():
    check = function_calls().check
    gold = {"tools": [TOOL]}
    assert check('book(city="Rome")\nbook(city="Lima", nights=3)', gold).correct
    assert (
        "'nights'" in check('book(city="Rome", nights=0)', gold).why or "minimum" in check('book(city="Rome", nights=0)', gold).why
    )
    assert check('book(city="Rome", nights=0)', gold).correct is False
    assert check("book(nights=1)", gold).correct is False
    assert check('book(city="Rome", stars=5)', gold).correct is False
    assert check('cook(city="Rome")', gold).why == "there is no function cook"
    assert check("I cannot.", gold).correct is False


def test_where_no_call_is_asked_for_words_are_right():
    check = function_calls().check
    assert check("I cannot book flights.", []).correct
    assert check("", []).correct is False
    assert check("f()", []).correct is False
    assert check("<tool_call>{</tool_call>", []).correct is False


def test_shares_of_calls():
    two = [BOOK, {"name": "book", "arguments": {"city": "Rome", "nights": 1}}]
    reply = 'book(city="Rome", nights=3), book(city="Oslo", nights=2)'
    assert function_calls(partial=True).check(f"[{reply}]", two).value == pytest.approx(0.75)
    assert function_calls(partial=True, ordered=True).check(f"[{reply}]", two).value == 0.0
    assert function_calls(partial=True).check('book(city="Oslo", nights=2)', two).value == 0.5
    found = function_calls().check('book(city="Oslo", nights=2)', two)
    assert (found.pays, found.parts["share"]) == (0.0, 0.5)
    assert found.why == "does not call book(city='Rome', nights=1)"
    assert function_calls(partial=True).check(as_json(*[BOOK] * 65), two).value == 0.0


@pytest.mark.parametrize(
    "gold", [None, "f(x=1)", 3, [{"arguments": {}}], {"calls": None}, {"tools": [3]}, {"name": "f", "arguments": 1}]
)
def test_gold_calls_that_cannot_be_read_give_no_verdict(gold):
    assert function_calls().check("f(x=1)", gold).correct is None


# ---- citations -------------------------------------------------------------------------------------------------------

SOURCES = ["The tower was built in 1889.", "It is 330 metres  high.", "Paris has two million people."]


@pytest.mark.parametrize(
    ("reply", "right", "precision", "recall"),
    [
        ("Built in 1889 [1], it is 330 m high [2].", True, 1, 1),
        ("Both [1, 2].", True, 1, 1),
        ("Both [1-2][1].", True, 1, 1),
        ("Built in 1889 [1].", False, 1, 0.5),
        ("All [1][2][3].", False, 2 / 3, 1),
        ("All [1-3].", False, 2 / 3, 1),
        ("None.", False, 0, 0),
        ("Wrong [3].", False, 0, 0),
        ("Both [1][2], and [4].", False, 0, 0),
        ("Both [1][2], and [0].", False, 0, 0),
        ("<think>[1][2]</think> Yes.", False, 0, 0),
    ],
)
def test_citations(reply, right, precision, recall):
    found = citations().check(reply, {"sources": SOURCES, "required": [1, 2]})
    assert found.correct is right
    assert (found.parts["precision"], found.parts["recall"]) == pytest.approx((precision, recall))


def test_citing_too_much_or_too_little_may_be_forgiven():
    gold = {"sources": 3, "required": [1, 2]}
    assert citations(precision=0.5).check("[1][2][3]", gold).correct
    assert citations(recall=0.5).check("[1]", gold).correct
    assert citations(partial=True).check("[1]", gold).value == pytest.approx(2 / 3)
    assert citations().check("[3]", {"sources": 3}).correct
    assert citations().check("so", {"sources": 3}).correct is False
    for gold in ({}, None, "3", {"sources": 0}, {"sources": 3, "required": [4]}, {"sources": 3, "required": []}):
        assert citations().check("[1]", gold).correct is None


def test_quotations_must_stand_where_they_are_said_to():
    check, gold = citations(quotes=True).check, {"sources": SOURCES, "required": [2]}
    assert check("It is “330 Metres high” [2].", gold).correct
    assert check('It is "330 metres high," we read [2].', gold).correct
    assert "does not occur in source 2" in check('It is "300 metres high" [2].', gold).why
    assert check('It was "built in 1889" [2].', gold).correct is False
    assert check('It was "built in 1889" [1, 2].', {"sources": SOURCES}).correct
    assert "is not cited" in check('It is "330 metres high". So it is [2].', gold).why
    assert check("[2]", {"sources": 3}).correct is None
