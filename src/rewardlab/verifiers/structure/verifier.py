"""Verifiers of structured output: JSON values, JSON that fits a schema, and tags such as <think> and <answer>."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking, between_tags
from rewardlab.text.blocks import json_block
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair, Verdict, differs, no_verdict, right, verifier, wrong

from .likeness import likeness
from .schemas import schema_of

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,50}")


@verifier
def json_value(response: str, answer: Any) -> Verdict:
    """Right if the reply gives the gold answer as JSON: its last ```json block after any thinking, else the <answer>, else all.

    answer: the value, or its JSON text. Both are parsed strictly: repeated keys, NaN and trailing commas are refused.
    1 equals 1.0, but neither true nor "1". The order of keys does not count; that of lists does.

    parts: validity, structure, content and format (see `likeness`).
    """
    try:
        gold = _value(answer)
    except ValueError as problem:
        return no_verdict(f"the gold answer is not JSON: {problem}")
    text = stated_json(response)
    parts = likeness(response, text, gold)
    try:
        value = strict_json.parse(text)
    except ValueError as problem:
        return wrong(f"not JSON: {problem}", text, parts=parts)
    return right(text, parts=parts) if strict_json.equal(value, gold) else wrong(differs(text, answer), text, parts=parts)


@verifier(over="pairs", modules=("jsonschema",))
def json_schema(
    pairs: list[Pair], *, schema: Mapping[str, Any] | None = None, formats: bool = True, seconds: PositiveFloat = 2.0
) -> list[Verdict]:
    """Right if the reply gives JSON, read as by `json_value`, that fits a JSON Schema (draft 2020-12, or its own $schema).

    answer: the schema; or {"schema", "value"}, if the value must also equal the gold one; each as data or as JSON text. It may
    stand where APIs put it: in OpenAI's response_format or a tool's parameters or input_schema. A schema that would fit every
    reply, or has a misspelt keyword, gives no verdict; one that only lists properties is of an object.
    schema: the schema for all problems; the answer is then ignored.  formats: whether "format" is checked, which JSON Schema leaves
    open: a date must be a date.  seconds: a reply whose validation takes longer is wrong.
    """
    checks = [_to_check(pair, schema) for pair in pairs]
    to_validate = [check for check in checks if not isinstance(check, Verdict)]
    try:
        require("verify", "jsonschema")
        pool = workers("rewardlab.verifiers.structure.schema:violation", seconds=seconds)
        results = iter(pool.map([([("", rules, value)], formats) for _, rules, value in to_validate]))
    except RewardlabError as problem:
        return [no_verdict(str(problem)) for _ in pairs]
    return [check if isinstance(check, Verdict) else _fit(check[0], next(results)) for check in checks]


def _to_check(pair: Pair, schema: Any) -> Verdict | tuple[str, Any, Any]:
    """A verdict, or what must be validated: the reply's JSON text, the schema, and the value."""
    gold: dict[str, Any] = {"schema": schema}
    try:
        if schema is None:
            data = _value(pair.answer)
            wrapped = isinstance(data, dict) and {"schema", "value"} <= data.keys()
            given = {name: data[name] for name in ("schema", "value")} if wrapped else {}
            gold = {name: x if x is None else _value(x) for name, x in given.items()} if wrapped else {"schema": data}
        # beside a gold value the schema need not say anything
        gold["schema"] = gold["schema"] if gold["schema"] == {} and "value" in gold else schema_of(gold["schema"])
    except ValueError as problem:
        return no_verdict(f"the gold answer has no JSON schema: {problem}")
    text = stated_json(pair.response)
    try:
        value = strict_json.parse(text)
    except ValueError as problem:
        return wrong(f"not JSON: {problem}", text)
    if "value" in gold and not strict_json.equal(value, gold["value"]):
        return wrong(differs(text, gold["value"]), text)
    return text, gold["schema"], value


def _fit(text: str, result: Done | Failed) -> Verdict:
    if isinstance(result, Failed):
        return wrong(f"validation {result.why}", text)
    if "unusable" in result.value:
        return no_verdict(result.value["unusable"])
    return wrong(result.value["wrong"], text) if result.value else right(text, "fits the schema")


def _value(answer: Any) -> Any:
    """A gold answer given as data or as JSON text. Raises ValueError."""
    if isinstance(answer, str):
        return strict_json.parse(answer)
    if answer is None or strict_json.deeper(answer, strict_json.DEEPEST):
        raise ValueError("nothing is given" if answer is None else "it is nested too deeply")
    try:
        json.dumps(answer)
    except (TypeError, ValueError):
        raise ValueError("it holds what JSON has no word for") from None
    return answer


def stated_json(response: str) -> str:
    """The JSON text of a reply: its last ```json block (or block without a language) after any thinking, else what stands in answer
    tags, else the whole text."""
    text = after_thinking(response)
    block = json_block(text, "json", "")
    if block is not None:
        return block
    text = text.strip()
    # a text of JSON may speak of tags
    return text if text[:1] in ("{", "[", '"') else between_tags(text).strip()


@verifier
def tags(
    response: str, answer: Any, *, names: tuple[str, ...] = ("think", "answer"), prefilled: bool | None = None,
    outside: bool = False, empty: bool = False,
) -> Verdict:  # fmt: skip
    """Right if the reply is <think>...</think><answer>...</answer>, or the tags `names`: each exactly once, in order, not nested.

    prefilled: whether the chat template writes the first opening tag, so that the reply begins inside it; None accepts both.
    outside: allow text before, between and after the tags.  empty: allow blank tags.

    The gold answer is ignored; the content of the last tag is recorded as the extracted answer.
    """
    if not names or len(set(names)) < len(names) or not all(NAME.fullmatch(name) for name in names):
        raise RewardlabError(f"tags: names must be different words of letters, digits, _ and -, not {list(names)}")
    marks = list(re.finditer(rf"</?(?:{'|'.join(names)})>", response))
    found_tags = [mark.group() for mark in marks]
    wanted = [mark for name in names for mark in (f"<{name}>", f"</{name}>")]
    # with None, a reply that does not begin with the first opening tag is taken to begin inside it
    starts_inside = prefilled or (prefilled is None and found_tags[:1] != wanted[:1])
    if found_tags != (wanted[1:] if starts_inside else wanted):
        return wrong(_malformed(found_tags, wanted[1:] if starts_inside else wanted, wanted[0] if prefilled else None))
    # spans of opening and closing tags in turn; a prefilled opening tag is an empty span at the start
    edges = [(0, 0)] * starts_inside + [mark.span() for mark in marks]
    contents = [response[a[1] : b[0]] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    around = [response[: edges[0][0]], *(response[a[1] : b[0]] for a, b in zip(edges[1::2], edges[2::2], strict=False))]
    if not outside and any(text.strip() for text in (*around, response[edges[-1][1] :])):
        return wrong("there is text outside the tags", contents[-1].strip())
    blank = [name for name, text in zip(names, contents, strict=True) if not text.strip()]
    if blank and not empty:
        return wrong(f"<{blank[0]}> is empty", contents[-1].strip())
    return right(contents[-1].strip(), "well formed")


def _malformed(said: list[str], want: list[str], prefilled: str | None) -> str:
    """What is wrong with the tags of a reply."""
    if prefilled in said:
        return f"{prefilled} is written again: the prompt ends with it"
    for mark in want:
        if said.count(mark) != 1:
            return f"{mark} is missing" if mark not in said else f"{mark} occurs {said.count(mark)} times"
    return f"the tags are out of order: {' '.join(said)}"
