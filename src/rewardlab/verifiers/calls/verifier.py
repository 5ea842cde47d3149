"""The verifier of function calls: compares them with the gold calls, or with the schemas of the tools."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from .accepted import Accepted, accepted_in, all_fit, canonical, fits
from .calls import LONGEST, Call, Malformed, Schema, from_json, read_all, tools_from, tries

MOST = 64
"""Most calls of a reply, unless the gold answer has more."""


class Gold(NamedTuple):
    """calls: None if any call that fits the tools is right.  tools: function name to the schema of its arguments.
    accepted: where several values of arguments are right, all of them; `calls` then has one of each.
    """

    calls: list[Call] | None
    tools: dict[str, Schema]
    accepted: list[Accepted] | None = None


@verifier(over="pairs", modules=("jsonschema",))
def function_calls(
    pairs: list[Pair],
    *,
    form: Literal["auto", "hermes", "json", "python", "xml"] = "auto",
    ordered: bool = False,
    partial: bool = False,
    seconds: PositiveFloat = 2.0,
) -> list[Verdict]:
    """Right if the reply makes exactly the gold calls: the same functions with the same arguments, by type and value.

    answer: a call {"name", "arguments"}, a list of calls, or {"calls", "tools"}; or its JSON text. An empty list asks for a reply
    without calls. [{NAME: {argument: [accepted values]}}], BFCL's form, takes any of the values; "" among them: it may be left out.
    tools: JSON schemas of the functions, {"name", "parameters"}, bare or in OpenAI's format; they may also be in a data column
    `tools` or `function`. They supply defaults for missing arguments and names for positional ones. {"tools"} alone: any calls that
    fit their schemas are right.

    ordered: the order of calls counts; otherwise they are compared as a multiset.

    form: hermes, <tool_call>{"name", "arguments"}</tool_call> within any text, with one call in a tag, or one a line; json, such an
    object, a list of them, or OpenAI's {"tool_calls"}, as the last ```json block or the whole reply; python, f(x=1),
    [f(x=1), g(y="a")], or one call per line, with literal arguments, as the last ```python block or the whole reply; xml,
    <function=f>, <function name="f"> or <invoke name="f"> with parameters (see `markup.py`); auto, whichever the reply looks like.
    Thinking is ignored.

    parts: share, the mean share of arguments that are right, over the gold calls or the reply's, whichever are more. Calls are
    matched by name, the most similar first. partial: a wrong reply is paid its share.
    """
    texts = [after_thinking(pair.response) for pair in pairs]
    try:
        calls_of_replies = read_all(texts, form, seconds)
        compared = [
            _compared(gold_of(pair), calls, text, ordered) for pair, calls, text in zip(pairs, calls_of_replies, texts, strict=True)
        ]
        verdicts = _validated(compared, seconds)
    except RewardlabError as problem:
        return [no_verdict(str(problem)) for _ in pairs]
    return [_with_partial(verdict, partial) for verdict in verdicts]


def gold_of(pair: Pair) -> Gold | Malformed:
    """The gold calls and tools of a pair; Malformed if they are unusable."""
    try:
        answer, tools = _data(pair.answer), _data(pair.meta.get("tools", pair.meta.get("function")))
        calls = answer
        if isinstance(answer, dict) and answer.keys() & {"calls", "tools", "ground_truth"}:
            calls, tools = answer.get("calls", answer.get("ground_truth")), answer.get("tools", answer.get("function", tools))
        known = tools_from(tools or ())
        if calls is None and not known:
            raise Malformed("there are neither gold calls nor tools")
        if accepted := accepted_in(calls):
            return Gold(list(map(canonical, accepted)), known, accepted)
        return Gold(None if calls is None else [call.bound(known) for call in from_json(calls)], known)
    except (ValueError, TypeError) as problem:
        return Malformed(str(problem))


def _data(value: Any) -> Any:
    return strict_json.parse(value) if isinstance(value, str) else value


def _compared(
    gold: Gold | Malformed, reply_calls: list[Call] | Malformed, text: str, ordered: bool
) -> Verdict | tuple[list[Call], Gold]:
    """A verdict; or, if any calls that fit the tools are right, the calls that must still be validated."""
    if isinstance(gold, Malformed):
        return no_verdict(f"the gold answer has no usable calls: {gold}")
    if gold.calls == []:
        return _without_calls(reply_calls, text)
    try:
        if isinstance(reply_calls, Malformed):
            raise reply_calls
        calls = [call.bound(gold.tools, gold.accepted is None, gold.calls or ()) for call in reply_calls]
    except Malformed as problem:
        return wrong(str(problem), text.strip()[:LONGEST], parts={"share": 0.0})
    stated = _written(calls)
    if not calls or len(calls) > max(MOST, len(gold.calls or ())):
        return wrong(f"makes {len(calls) or 'no'} calls", stated, parts={"share": 0.0})
    if gold.calls is None:
        unknown_names = [call.name for call in calls if call.name not in gold.tools]
        if unknown_names:
            return wrong(f"there is no function {unknown_names[0]}", stated, parts={"share": 0.0})
        return calls, gold
    if gold.accepted is not None and all_fit(calls, gold.accepted, ordered):
        return right(stated, parts={"share": 1.0})
    if gold.accepted is not None:
        return wrong(_unaccepted(calls, gold.accepted), stated, parts={"share": _share(calls, gold.calls, ordered)})
    reply_keys, gold_keys = [_key(call) for call in calls], [_key(call) for call in gold.calls]
    if reply_keys == gold_keys or (not ordered and Counter(reply_keys) == Counter(gold_keys)):
        return right(stated, parts={"share": 1.0})
    return wrong(_differences(calls, gold.calls), stated, parts={"share": _share(calls, gold.calls, ordered)})


def _without_calls(reply_calls: list[Call] | Malformed, text: str) -> Verdict:
    """The verdict if no call is wanted: right for text that is not a call and does not try to be one."""
    if isinstance(reply_calls, Malformed) and text.strip() and not tries(text):
        return right(text.strip()[:LONGEST], "makes no call", parts={"share": 1.0})
    return wrong("makes a call where none is wanted" if text.strip() else "says nothing", text.strip(), parts={"share": 0.0})


def _key(call: Call) -> Any:
    return call.name, strict_json.canonical(dict(call.arguments))


def _differences(reply_calls: list[Call], gold: list[Call]) -> str:
    """The first missing and the first superfluous call; if there are none, the order differs."""
    reply_counts, gold_counts = Counter(map(_key, reply_calls)), Counter(map(_key, gold))
    missing = [str(call) for call in gold if _key(call) in gold_counts - reply_counts]
    extra = [str(call) for call in reply_calls if _key(call) in reply_counts - gold_counts]
    reasons = [f"{verb} {calls[0]}" for verb, calls in (("does not call", missing), ("calls", extra)) if calls]
    return ", but ".join(reasons) or "makes the calls in another order"


def _unaccepted(reply_calls: list[Call], accepted: list[Accepted]) -> str:
    """The first call that is not accepted; if there is none, how many calls are wanted."""
    bad = next((call for call in reply_calls if not any(fits(call, gold) for gold in accepted)), None)
    if bad is not None:
        return f"calls {bad}, which is not accepted"
    return f"makes {len(reply_calls)} calls where {len(accepted)} are wanted, or one of them in another's place"


def _share(reply_calls: list[Call], gold: list[Call], ordered: bool) -> float:
    """The mean similarity of matched calls: by position if ordered, else greedily, the most similar first."""
    if ordered:
        total = sum(_alike(a, b) for a, b in zip(reply_calls, gold, strict=False))
        # the longer list: calls too many cost as much as missing ones
        return total / max(len(reply_calls), len(gold))
    total, free_said, free_gold = 0.0, set(range(len(reply_calls))), set(range(len(gold)))
    for negated, i, j in sorted((-_alike(a, b), i, j) for i, a in enumerate(reply_calls) for j, b in enumerate(gold)):
        if i in free_said and j in free_gold:
            free_said.remove(i)
            free_gold.remove(j)
            # similarities are negated to sort the greatest first
            total -= negated
    return total / max(len(reply_calls), len(gold))


def _alike(a: Call, b: Call) -> float:
    """The similarity of two calls: the share of equal arguments; 0 for different functions."""
    names = a.arguments.keys() | b.arguments.keys()
    if a.name != b.name or not names:
        return float(a.name == b.name)
    both = a.arguments.keys() & b.arguments.keys()
    return sum(strict_json.equal(a.arguments[name], b.arguments[name]) for name in both) / len(names)


def _validated(compared: list[Verdict | tuple[list[Call], Gold]], seconds: float) -> list[Verdict]:
    """Verdicts for all: validates the calls that have none against the schemas of their functions."""
    to_validate = [item for item in compared if not isinstance(item, Verdict)]
    if not to_validate:
        return [item for item in compared if isinstance(item, Verdict)]
    require("verify", "jsonschema")
    checks = [[(f"{c.name}: ", gold.tools[c.name], dict(c.arguments)) for c in calls] for calls, gold in to_validate]
    results = iter(
        workers("rewardlab.verifiers.structure.schema:violation", seconds=seconds).map([(item, False) for item in checks])
    )
    return [item if isinstance(item, Verdict) else _fit(item[0], next(results)) for item in compared]


def _fit(calls: list[Call], result: Done | Failed) -> Verdict:
    stated = _written(calls)
    if isinstance(result, Done) and not result.value:
        return right(stated, "fits the tools", parts={"share": 1.0})
    if isinstance(result, Done) and "unusable" in result.value:
        return no_verdict(result.value["unusable"])
    return wrong(result.value["wrong"] if isinstance(result, Done) else f"checking {result.why}", stated, parts={"share": 0.0})


def _written(calls: list[Call]) -> str:
    return "; ".join(map(str, calls))


def _with_partial(verdict: Verdict, partial: bool) -> Verdict:
    if verdict.correct is not False or not partial:
        return verdict
    return replace(verdict, value=verdict.parts["share"])
