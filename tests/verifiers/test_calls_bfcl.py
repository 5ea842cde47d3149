"""Calls in every native format, against every accepted value of the Berkeley function calling leaderboard."""

from __future__ import annotations

import copy
import gzip
import html
import json
import time
from functools import cache

import pytest

from rewardlab.envs.tool_messages import calls_of
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.calls.accepted import accepted_in, canonical
from rewardlab.verifiers.calls.calls import Call, Malformed
from rewardlab.verifiers.calls.verifier import function_calls

NAMES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_parallel", "live_parallel_multiple")
SOME = ("simple_python", "parallel", "live_parallel_multiple")
"""Those whose calls are read in every format; the others in `make test-all`."""


@cache
def rows(name):
    """The rows of a part of the leaderboard with their answers."""

    def read(file):
        try:
            path = data_file("bfcl", f"{file}.jsonl.gz")
        except RewardlabError as problem:
            pytest.skip(str(problem))
        with gzip.open(path) as lines:
            return list(map(json.loads, lines))

    answers = {row["id"]: row["ground_truth"] for row in read(f"{name}_answers")}
    return [(row["function"], answers[row["id"]]) for row in read(name)]


# ---- the formats -----------------------------------------------------------------------------------------------------


def raw(value):
    return value if isinstance(value, str) else json.dumps(value)


def kind(value):
    return {bool: "boolean", int: "integer", float: "float", str: "string", list: "array", dict: "dict"}.get(type(value), "any")


def as_hermes(calls):
    return "So:\n" + "\n".join(f"<tool_call>\n{json.dumps({'name': n, 'arguments': a})}\n</tool_call>" for n, a in calls)


def as_json(calls):
    return json.dumps([{"function": n, "parameters": a} for n, a in calls])


def as_openai(calls):
    return json.dumps({"tool_calls": [{"type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for n, a in calls]})


def as_python(calls):
    return "[" + ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls) + "]"


def in_toolcall(calls):
    return f"<TOOLCALL>{as_python(calls)}</TOOLCALL>"


def as_mistral(calls):
    return f"[TOOL_CALLS]{json.dumps([{'name': n, 'arguments': a} for n, a in calls])}"


def as_verbose_xml(calls):
    def param(k, v):
        return f'<param name="{k}" value="{html.escape(raw(v))}" type="{kind(v)}"/>'

    said = (f'<function name="{n}"><params>{"".join(param(k, v) for k, v in a.items())}</params></function>' for n, a in calls)
    return f"<functions>{''.join(said)}</functions>"


def as_concise_xml(calls):
    def param(k, v):
        return f'<param name="{k}" type="{kind(v)}">{html.escape(raw(v))}</param>'

    said = (f'<function name="{n}">{"".join(param(k, v) for k, v in a.items())}</function>' for n, a in calls)
    return f"```xml\n<functions>\n{''.join(said)}\n</functions>\n```"


def as_qwen_coder(calls):
    said = ("\n".join(f"<parameter={k}>\n{raw(v)}\n</parameter>" for k, v in a.items()) for _, a in calls)
    return "\n".join(
        f"<tool_call>\n<function={n}>\n{of}\n</function>\n</tool_call>" for (n, _), of in zip(calls, said, strict=True)
    )


def as_invoke(calls):
    def param(k, v):
        return f'<parameter name="{k}">{html.escape(raw(v))}</parameter>'

    said = "\n".join(f'<invoke name="{n}">\n{"".join(param(k, v) for k, v in a.items())}\n</invoke>' for n, a in calls)
    return f"<function_calls>\n{said}\n</function_calls>"


def as_llama(calls):
    return "".join(f"<function={n}>{json.dumps(a)}</function>" for n, a in calls)


def as_glm(calls):
    def pair(k, v):
        return f"<arg_key>{k}</arg_key>\n<arg_value>{raw(v)}</arg_value>"

    return "\n".join(f"<tool_call>{n}\n" + "\n".join(pair(k, v) for k, v in a.items()) + "\n</tool_call>" for n, a in calls)


MARKS = (
    ("<tool_calls>", "</tool_calls>"), ("<tools>", "</tools>"), ("<function_calls>", "</function_calls>"),
    ("<|tool_call|>", "<|/tool_call|>"), ("<|tool_call_start|>", "<|tool_call_end|>"), ("<|python_tag|>", ""), ("functools", ""),
    ("[TOOL_CALLS]", ""), ("<TOOLCALL>", ""),
)  # fmt: skip


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_marks_around_calls_are_no_part_of_them(opens, closes):
    gold = [{"name": "f", "arguments": {"x": 1}}]
    ways = (as_python,) if opens != "functools" else ()
    for written in (*ways, lambda calls: json.dumps([{"name": n, "arguments": a} for n, a in calls])):
        found = [function_calls().check(f"{opens}{written([('f', {'x': x})])}{closes}", gold).correct for x in (1, 2)]
        assert found == [True, False]
        assert function_calls().check(f"{opens}{written([('f', {'x': 1})])}{closes}", []).correct is False
    assert opens == "functools" or function_calls().check(f"{opens}(broken{closes}", []).correct is False


FORMATS = [
    as_hermes, as_json, as_openai, as_python, in_toolcall, as_mistral, as_verbose_xml, as_concise_xml, as_qwen_coder, as_invoke,
    as_llama, as_glm,
]  # fmt: skip


def judged(pairs):
    return [verdict.correct for verdict in function_calls().check_all(pairs)]


@pytest.mark.parametrize("name", [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in SOME)])
@pytest.mark.parametrize("written", FORMATS)
def test_every_canonical_call_of_the_leaderboard_is_right(name, written):
    said = [(canonical_calls(truth), {"calls": truth, "tools": tools}) for tools, truth in rows(name)]
    found = judged([(written(calls), gold) for calls, gold in said])
    wrong = [(calls, gold["calls"]) for (calls, gold), right in zip(said, found, strict=True) if not right]
    assert not wrong, wrong[:3]
    # in another order, and as the answers stand in the files
    found = judged([(written(calls[::-1]), gold["calls"]) for calls, gold in said]) if written is as_hermes else []
    assert all(found)


def canonical_calls(truth):
    return [(call.name, dict(call.arguments)) for call in map(canonical, accepted_in(truth))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("written", [FORMATS[0], *(pytest.param(form, marks=pytest.mark.slow) for form in FORMATS[1:])])
def test_every_mutated_call_of_the_leaderboard_is_wrong(name, written):
    said = []
    for tools, truth in rows(name):
        gold = {"calls": truth, "tools": tools}
        said += [(calls, gold) for calls in mutants(canonical_calls(truth), truth)]
    assert len(said) > 4 * len(rows(name))
    found = judged([(written(calls), gold) for calls, gold in said])
    right = [(calls, gold["calls"]) for (calls, gold), correct in zip(said, found, strict=True) if correct is not False]
    assert not right, right[:3]


def mutants(calls, truth):
    """Calls that differ from the canonical ones in one place, so that no other accepted value is met."""
    yield calls[:-1]
    yield [*calls, calls[-1]]
    for i, (name, arguments) in enumerate(calls):

        def put(call, i=i):
            return [*calls[:i], call, *calls[i + 1 :]]

        yield put((name + "x", arguments))
        yield put((name, {**arguments, "nothing_of_that_name": 1}))
        for key, value in arguments.items():
            yield put((name, {k: v for k, v in arguments.items() if k != key}))
            other = mutated(value)
            # what parallel calls accept may be the other's value: then calls are equal in another order
            if all(other not in of[name].get(key, ()) for of in truth if name in of):
                yield put((name, {**arguments, key: other}))


def mutated(value):
    value = copy.deepcopy(value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 977
    if isinstance(value, str):
        return value + "zzq"
    if isinstance(value, list):
        return [*value, value[-1] if value else 1]
    if isinstance(value, dict):
        return {**value, "nothing_of_that_name": 1}
    return "zzq"


def test_replies_without_calls_are_right_where_nothing_fits():
    tools = {"tools": [tool for row in rows("simple_python")[:3] for tool in row[0]]}
    for reply in ("None of these functions fits.", "I cannot do that."):
        assert function_calls().check(reply, []).correct is True
        assert function_calls().check(reply, tools).correct is False
    for written in FORMATS:
        assert function_calls().check(written([("f", {"x": 1})]), []).correct is False


# ---- what is accepted ------------------------------------------------------------------------------------------------

TRUTH = [
    {
        "order": {
            "what": ["tea", "black tea"],
            "many": [2],
            "extras": ["", ["milk"]],
            "to": [{"city": ["Bern"], "zip": ["", "3000"]}],
        }
    }
]


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"what": "tea", "many": 2, "to": {"city": "Bern"}}, True),
        ({"what": "Black-Tea", "many": 2.0, "to": {"city": "BERN", "zip": "3000"}, "extras": ["milk"]}, True),
        ({"what": "coffee", "many": 2, "to": {"city": "Bern"}}, False),
        ({"what": "tea", "many": True, "to": {"city": "Bern"}}, False),
        ({"what": "tea", "many": "2", "to": {"city": "Bern"}}, False),
        ({"what": "tea", "to": {"city": "Bern"}}, False),
        ({"what": "tea", "many": 2, "to": {}}, False),
        ({"what": "tea", "many": 2, "to": {"city": "Bern", "land": "CH"}}, False),
        ({"what": "tea", "many": 2, "to": {"city": "Bern"}, "extras": ["milk", "milk"]}, False),
        ({"what": "tea", "many": 2, "to": {"city": "Bern"}, "extras": []}, False),
    ],
)
def test_any_accepted_value_is_right_and_no_other(arguments, right):
    for written in (as_hermes, as_python):
        assert function_calls().check(written([("order", arguments)]), TRUTH).correct is right
    assert function_calls().check(as_hermes([("order", arguments)]), json.dumps(TRUTH)).correct is right
    assert function_calls().check(as_hermes([("order", arguments)]), {"ground_truth": TRUTH, "function": []}).correct is right


def test_calls_are_matched_with_accepted_ones_so_that_all_find_a_place():
    truth = [{"f": {"x": [1, 2]}}, {"f": {"x": [1]}}]
    for said, right in (([1, 2], True), ([2, 1], True), ([1, 1], True), ([2, 2], False), ([1], False), ([1, 2, 1], False)):
        assert function_calls().check(as_hermes([("f", {"x": x}) for x in said]), truth).correct is right
    assert function_calls(ordered=True).check(as_hermes([("f", {"x": 1}), ("f", {"x": 2})]), truth).correct is False
    assert function_calls(partial=True).check(as_hermes([("f", {"x": 1})]), truth).value == pytest.approx(0.5)


def test_types_of_the_leaderboard_are_those_of_json_schema():
    kinds = {
        "a": {"type": "dict"},
        "b": {"type": "float"},
        "c": {"type": "tuple", "items": {"type": "integer"}},
        "d": {"type": "any"},
    }
    tools = {"tools": [{"name": "f", "parameters": {"type": "dict", "properties": kinds, "required": ["a"]}}]}
    assert function_calls().check('f(a={"x": 1}, b=1.5, c=(1, 2), d=None)', tools).correct is True
    for bad in ("f(a=1)", 'f(a={}, b="x")', 'f(a={}, c=["x"])', "f(b=1.5)"):
        assert function_calls().check(bad, tools).correct is False


# ---- markup ----------------------------------------------------------------------------------------------------------


def as_deepseek(calls):
    said = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{json.dumps(a)}\n```<｜tool▁call▁end｜>" for n, a in calls
    )
    return f"I look it up.<｜tool▁calls▁begin｜>{said}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


def as_deepseek_v31(calls):
    said = "".join(f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{json.dumps(a)}<｜tool▁call▁end｜>" for n, a in calls)
    return f"<｜tool▁calls▁begin｜>{said}<｜tool▁calls▁end｜>"


def as_kimi(calls):
    said = "".join(
        f"<|tool_call_begin|>functions.{n}:{i}<|tool_call_argument_begin|>{json.dumps(a)}<|tool_call_end|>"
        for i, (n, a) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{said}<|tool_calls_section_end|>"


def as_harmony(calls):
    said = "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{json.dumps(a)}<|call|>" for n, a in calls
    )
    return f"<|channel|>analysis<|message|>They ask for f.<|end|><|start|>assistant{said}"


def as_harmony_to_first(calls):
    (n, a), *rest = calls
    assert not rest
    return f"<|start|>assistant to=functions.{n}<|channel|>commentary json<|message|>{json.dumps(a)}"


@pytest.mark.parametrize("written", [as_deepseek, as_deepseek_v31, as_kimi, as_harmony])
def test_several_calls_between_special_tokens(written):
    gold = [{"name": "f", "arguments": {"x": 1}}, {"name": "g.h", "arguments": {"y": ["```", "a`b"]}}]
    said = [written([("f", {"x": x}), ("g.h", {"y": ["```", "a`b"]})]) for x in (1, 2)]
    assert [function_calls().check(reply, gold).correct for reply in said] == [True, False]
    assert function_calls().check(written([("f", {"x": 1})]), []).correct is False


@pytest.mark.parametrize(
    "said",
    [
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": 1}", "<｜tool▁calls▁begin｜>f<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>f{\"x\": 1}<｜tool▁call▁end｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>[1]<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": 1, \"x\": 1}<｜tool▁call▁end｜>",
        "<|channel|>commentary to=functions.f <|message|>x is 1<|call|>",
        "<|channel|>commentary to=functions. <|message|>{\"x\": 1}<|call|>",
        "<|channel|>analysis<|message|>f(x=1)<|end|>",
    ],
)  # fmt: skip
def test_broken_calls_between_special_tokens_are_none(said):
    assert function_calls().check(said, [{"name": "f", "arguments": {"x": 1}}]).correct is False


def test_environments_read_them_too():
    for written in (as_deepseek, as_deepseek_v31, as_kimi, as_harmony, as_harmony_to_first):
        assert calls_of(written([("f", {"x": 1})]), ["f"]) == [Call("f", {"x": 1})]
    assert isinstance(calls_of("<｜tool▁call▁begin｜>f<｜tool▁sep｜>{", ["f"]), Malformed)


@pytest.mark.parametrize(
    "written",
    [
        as_deepseek,
        as_deepseek_v31,
        as_kimi,
        as_harmony,
        as_harmony_to_first,
        as_verbose_xml,
        as_concise_xml,
        as_qwen_coder,
        as_invoke,
        as_glm,
        as_llama,
    ],
)
def test_values_in_markup_have_the_types_of_schema_gold_or_json(written):
    arguments = {
        "text": "7",
        "count": 7,
        "share": 0.5,
        "on": True,
        "items": [1, "a"],
        "within": {"x": None},
        "code": "a < b && c > 'd'\n\"e\"",
    }
    gold = [{"name": "f", "arguments": arguments}]
    types = {name: {"type": kind(value).replace("dict", "object").replace("float", "number")} for name, value in arguments.items()}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": types}}]
    said = written([("f", arguments)])
    assert function_calls().check(said, gold).correct is True
    assert function_calls().check(said, gold, tools=tools).correct is True
    assert function_calls().check(said, {"tools": tools}).correct is True
    assert function_calls().check(f"<think>{said}</think>", gold).correct is False
    for name, other in (("text", "8"), ("count", 8), ("on", False), ("items", ["1", "a"]), ("code", "a < b")):
        assert function_calls().check(written([("f", {**arguments, name: other})]), gold, tools=tools).correct is False


@pytest.mark.parametrize(
    "said",
    [
        "<function=f><parameter=x>1</parameter>",
        "<function=f><parameter=x>1</function>",
        "<function=f>x is 1</function>",
        "<function=f><parameter=x>1</parameter><parameter=x>1</parameter></function>",
        "<function=f><parameter=x>1</parameter> and more</function>",
        '<function name="f"><param value="1"/></function>',
        "<function=f><parameter=x>1</parameter></function><function=g>",
        "<tool_call>f<arg_key>x</arg_key></tool_call>",
        "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value> and more</tool_call>",
        "<function=><parameter=x>1</parameter></function>",
    ],
)
def test_broken_markup_is_no_call(said):
    found = function_calls().check(said, [{"name": "f", "arguments": {"x": 1}}])
    assert found.correct is False
    assert function_calls(form="xml").check(said, [{"name": "f", "arguments": {"x": 1}}]).correct is False
    assert function_calls().check(said, []).correct in (True, False)


def test_hostile_markup_takes_little_time():
    start = time.perf_counter()
    gold = [{"name": "f", "arguments": {"x": 1}}]
    pieces = (
        "<function=f>", "<function=", '<function name="', "<parameter=x>", "<function=f><parameter=x>", '<param a="', "</function>",
        "<arg_key>", "<tool_call><arg_key>x", "<invoke name='f'><param ", "[TOOL_CALLS]", "<TOOLCALL>", "<param a=\"b\" ",
        "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "to=functions.f<|message|>", "to=functions.f ", "<|tool_call_end|>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f ```json `",
    )  # fmt: skip
    for piece in pieces:
        for text in (piece * (30_000 // len(piece)), f"<function=f>{piece * (30_000 // len(piece))}</function>"):
            assert function_calls().check(text, gold).correct is False
    assert time.perf_counter() - start < 20
