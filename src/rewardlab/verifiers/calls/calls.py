"""Function calls as models write them, read without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rewardlab.processes.pool import Failed, workers
from rewardlab.text import strict_json
from rewardlab.text.blocks import last_block

FORMS = ("auto", "hermes", "json", "python")
LONGEST = 20_000
"""Characters of calls in Python's syntax."""
_TAGGED = re.compile(r"<tool_call>(.*?)(</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)

Schema = Mapping[str, Any]


class Malformed(ValueError):
    """Calls that cannot be read; the message says why."""


class Call(NamedTuple):
    """positional: arguments without a name, which Python's syntax allows."""

    name: str
    arguments: Mapping[str, Any]
    positional: Sequence[Any] = ()

    def __str__(self) -> str:
        written = [*map(repr, self.positional), *(f"{name}={value!r}" for name, value in self.arguments.items())]
        text = f"{self.name}({', '.join(written)})"
        return text if len(text) <= 120 else text[:119] + "…"

    def bound(self, tools: Mapping[str, Schema]) -> Call:
        """The call with every argument by its name, and with the defaults of those left out. Raises Malformed."""
        known = tools.get(self.name, {}).get("properties", {})
        if len(self.positional) > len(known):
            raise Malformed(f"{self.name} has an argument that no name is known for")
        placed = dict(zip(known, self.positional, strict=False))
        if twice := placed.keys() & self.arguments.keys():
            raise Malformed(f"{self.name} has the argument {min(twice)} twice")
        defaults = {name: rules["default"] for name, rules in known.items() if isinstance(rules, Mapping) and "default" in rules}
        return Call(self.name, defaults | placed | dict(self.arguments))


def read_all(texts: Sequence[str], form: str, seconds: float) -> list[list[Call] | Malformed]:
    """The calls of every text. `form` is one of FORMS; Python's syntax is read in processes of their own, `seconds` each."""
    found = [_read(text, form) for text in texts]
    asked = [i for i, one in enumerate(found) if isinstance(one, str)]
    pool = workers("rewardlab.verifiers.calls.syntax:calls", seconds=seconds)
    for i, result in zip(asked, pool.map([(found[i],) for i in asked]), strict=True):
        if isinstance(result, Failed):
            found[i] = Malformed(f"reading the calls {result.why}")
        elif "wrong" in result.value:
            found[i] = Malformed(f"not calls in Python's syntax: {result.value['wrong']}")
        else:
            found[i] = [Call(**call) for call in result.value["calls"]]
    return [Malformed(one) if isinstance(one, str) else one for one in found]


def _read(text: str, form: str) -> list[Call] | Malformed | str:
    """The calls of a text, or the Python that they are still to be read from."""
    try:
        if form == "hermes" or (form == "auto" and "<tool_call>" in text):
            return _hermes(text)
        block = last_block(text, "json")
        stated = text.strip() if block is None else block
        if form == "json" or (form == "auto" and (block is not None or _is_json(stated))):
            return from_json(strict_json.parse(stated))
    except ValueError as problem:
        return problem if isinstance(problem, Malformed) else Malformed(f"no JSON: {problem}")
    block = last_block(text, "python", "py", "tool_code", "")
    code = text.strip() if block is None else block
    return code if len(code) <= LONGEST else Malformed(f"calls of over {LONGEST} characters")


def _hermes(text: str) -> list[Call]:
    found = []
    for body, end in _TAGGED.findall(text):
        if not end:
            raise Malformed("<tool_call> is not closed")
        found += from_json(strict_json.parse(body))
    if text.count("</tool_call>") != len(found):
        raise Malformed("<tool_call> and </tool_call> do not match, or hold no single call")
    return found


def from_json(value: Any) -> list[Call]:
    """Calls as data: {"name", "arguments"} (or "parameters"), a list of them, or as OpenAI wraps them. Raises Malformed.

    The arguments are an object, or its JSON text.
    """
    if isinstance(value, Mapping) and "tool_calls" in value:
        value = value["tool_calls"]
    return [_call(one) for one in (value if isinstance(value, list | tuple) else [value])]


def _call(value: Any) -> Call:
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise Malformed("a call is no object with a name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = strict_json.parse(arguments)
    if not isinstance(arguments, Mapping):
        raise Malformed(f"the arguments of {value['name'][:60]} are no object")
    return Call(value["name"], arguments)


def tools_from(given: Iterable[Any]) -> dict[str, Schema]:
    """The schema of each function's arguments: {"name", "parameters"}, bare or as OpenAI wraps it. Raises Malformed."""
    found = {}
    for one in given:
        tool = one["function"] if isinstance(one, Mapping) and isinstance(one.get("function"), Mapping) else one
        if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
            raise Malformed("a tool is no object with a name")
        found[tool["name"]] = tool.get("parameters") or {"type": "object", "properties": {}}
    return found


def _is_json(text: str) -> bool:
    try:
        strict_json.parse(text)
    except ValueError:
        return False
    return True
