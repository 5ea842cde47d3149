"""Function calls held against the gold calls, and against the tools' schemas."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError, unknown
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from .calls import FORMS, LONGEST, Call, Malformed, Schema, from_json, read_all, tools_from

MOST = 64
"""Calls of a reply that are looked at; a gold answer may have more."""


class Gold(NamedTuple):
    """calls: None where any call that fits the tools is right.  tools: the schema of each function's arguments."""

    calls: list[Call] | None
    tools: dict[str, Schema]


@verifier(over="pairs")
def function_calls(
    pairs: list[Pair], *, form: str = "auto", ordered: bool = False, partial: bool = False, seconds: float = 2.0
) -> list[Verdict]:
    """Right where the reply makes exactly the gold calls: their names, and their arguments with types and values.

    answer: a call {"name", "arguments"}, a list of calls, or {"calls", "tools"}; or its JSON text. No calls, [], ask for a reply in
    words. tools: JSON schemas of the functions, {"name", "parameters"} bare or as OpenAI wraps them, which may also stand in a
    column `tools`. With them an argument left out has its default, and one without a name its place. {"tools"} alone: any calls
    that fit their schemas are right. Calls are a multiset, or a sequence with `ordered`.

    form: hermes, <tool_call>{"name", "arguments"}</tool_call> among any text; json, such an object, a list of them, or OpenAI's
    {"tool_calls"}, as the last ```json block or the whole reply; python, f(x=1), [f(x=1), g(y="a")], or a call a line, of
    literals alone, as the last ```python block or the whole reply; auto, whichever the reply looks like. Thinking is left out.

    parts: share, the mean share of arguments that are right, over the gold calls or the reply's, whichever are more; a call is
    matched with one of the same name, the best first. partial: a wrong reply is paid its share.
    """
    if form not in FORMS:
        raise unknown("form of calls", form, FORMS)
    texts = [after_thinking(pair.response) for pair in pairs]
    try:
        said = read_all(texts, form, seconds)
        found = [_held(_gold(pair), calls, text, ordered) for pair, calls, text in zip(pairs, said, texts, strict=True)]
        verdicts = _fitted(found, seconds)
    except RewardlabError as problem:
        return [no_verdict(str(problem)) for _ in pairs]
    return [_paid(verdict, partial) for verdict in verdicts]


def _gold(pair: Pair) -> Gold | Malformed:
    """The gold calls and tools of a pair; Malformed where they cannot be used."""
    try:
        answer, tools = _data(pair.answer), _data(pair.meta.get("tools"))
        calls = answer
        if isinstance(answer, dict) and answer.keys() & {"calls", "tools"}:
            calls, tools = answer.get("calls"), answer.get("tools", tools)
        known = tools_from(tools or ())
        if calls is None and not known:
            raise Malformed("there are neither gold calls nor tools")
        return Gold(None if calls is None else [call.bound(known) for call in from_json(calls)], known)
    except (ValueError, TypeError) as problem:
        return Malformed(str(problem))


def _data(given: Any) -> Any:
    return strict_json.parse(given) if isinstance(given, str) else given


def _held(gold: Gold | Malformed, said: list[Call] | Malformed, text: str, ordered: bool) -> Verdict | tuple[list[Call], Gold]:
    """A verdict; or, where any calls will do that fit the tools, the calls that are to be checked."""
    if isinstance(gold, Malformed):
        return no_verdict(f"the gold answer holds no calls: {gold}")
    if gold.calls == []:
        return _in_words(said, text)
    try:
        if isinstance(said, Malformed):
            raise said
        calls = [call.bound(gold.tools) for call in said]
    except Malformed as problem:
        return wrong(str(problem), text.strip()[:LONGEST], parts={"share": 0.0})
    stated = _written(calls)
    if not calls or len(calls) > max(MOST, len(gold.calls or ())):
        return wrong(f"makes {len(calls) or 'no'} calls", stated, parts={"share": 0.0})
    if gold.calls is None:
        strange = [call.name for call in calls if call.name not in gold.tools]
        return wrong(f"there is no function {strange[0]}", stated, parts={"share": 0.0}) if strange else (calls, gold)
    mine, want = [_key(call) for call in calls], [_key(call) for call in gold.calls]
    if mine == want or (not ordered and Counter(mine) == Counter(want)):
        return right(stated, parts={"share": 1.0})
    return wrong(_unlike(calls, gold.calls), stated, parts={"share": _share(calls, gold.calls, ordered)})


def _in_words(said: list[Call] | Malformed, text: str) -> Verdict:
    """Where no call is asked for: text that is no call, and does not try to be one."""
    if isinstance(said, Malformed) and text.strip() and "<tool_call" not in text:
        return right(text.strip()[:LONGEST], "makes no call", parts={"share": 1.0})
    return wrong("makes a call where none is asked for" if text.strip() else "says nothing", text.strip(), parts={"share": 0.0})


def _key(call: Call) -> Any:
    return call.name, strict_json.canonical(dict(call.arguments))


def _unlike(said: list[Call], gold: list[Call]) -> str:
    """What is missing, and what was not asked for; else only the order is wrong."""
    mine, want = Counter(map(_key, said)), Counter(map(_key, gold))
    missing = [str(call) for call in gold if _key(call) in want - mine]
    extra = [str(call) for call in said if _key(call) in mine - want]
    told = [f"{what} {calls[0]}" for what, calls in (("does not call", missing), ("calls", extra)) if calls]
    return ", but ".join(told) or "makes the calls in another order"


def _share(said: list[Call], gold: list[Call], ordered: bool) -> float:
    """The mean likeness of matched calls: those in the same place, or the most alike first."""
    if ordered:
        total = sum(_alike(a, b) for a, b in zip(said, gold, strict=False))
        return total / max(len(said), len(gold))
    total, free_said, free_gold = 0.0, set(range(len(said))), set(range(len(gold)))
    for less, i, j in sorted((-_alike(a, b), i, j) for i, a in enumerate(said) for j, b in enumerate(gold)):
        if i in free_said and j in free_gold:
            free_said.remove(i)
            free_gold.remove(j)
            total -= less
    return total / max(len(said), len(gold))


def _alike(a: Call, b: Call) -> float:
    """The share of arguments that two calls of one function have in common."""
    names = a.arguments.keys() | b.arguments.keys()
    if a.name != b.name or not names:
        return float(a.name == b.name)
    both = a.arguments.keys() & b.arguments.keys()
    return sum(strict_json.equal(a.arguments[name], b.arguments[name]) for name in both) / len(names)


def _fitted(found: list[Verdict | tuple[list[Call], Gold]], seconds: float) -> list[Verdict]:
    """Calls that await it checked against the schemas of their functions."""
    asked = [one for one in found if not isinstance(one, Verdict)]
    if not asked:
        return [one for one in found if isinstance(one, Verdict)]
    require("verify", "jsonschema")
    checks = [[(f"{c.name}: ", gold.tools[c.name], dict(c.arguments)) for c in calls] for calls, gold in asked]
    results = iter(workers("rewardlab.verifiers.structure.schema:violation", seconds=seconds).map([(one, False) for one in checks]))
    return [one if isinstance(one, Verdict) else _fit(one[0], next(results)) for one in found]


def _fit(calls: list[Call], result: Done | Failed) -> Verdict:
    stated = _written(calls)
    if isinstance(result, Done) and not result.value:
        return right(stated, "fits the tools", parts={"share": 1.0})
    if isinstance(result, Done) and "unusable" in result.value:
        return no_verdict(result.value["unusable"])
    return wrong(result.value["wrong"] if isinstance(result, Done) else f"checking {result.why}", stated, parts={"share": 0.0})


def _written(calls: list[Call]) -> str:
    return "; ".join(map(str, calls))


def _paid(verdict: Verdict, partial: bool) -> Verdict:
    if verdict.correct is not False or not partial:
        return verdict
    return replace(verdict, value=verdict.parts["share"])
