"""Calls of tools in the text of a reply, and their results as a conversation recorded them. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import strict_json
from .answers import after_thinking

TAG = "<tool_call>"
UNREADABLE, NO_RESULT = "The calls cannot be read.", "no result"
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)

Call = tuple[str, Mapping[str, Any]]
"""The name of a tool, and its arguments by name."""


def calls_in(reply: str) -> list[Call] | None:
    """The calls that a reply makes within <tool_call> and </tool_call>, one a tag or one a line; none while it is thinking.

    None: it cannot be read, or makes none where it has a tag.
    """
    said = after_thinking(reply)
    if TAG not in said:
        return []
    if said.count(TAG) != said.count("</tool_call>"):
        return None
    try:
        return [call_of(value) for body in _TAGGED.findall(said) for value in _values(body)] or None
    except ValueError:
        return None


def _values(body: str) -> list[Any]:
    try:
        return [strict_json.parse(body)]
    except ValueError:
        return [strict_json.parse(line) for line in body.splitlines() if line.strip()]


def call_of(value: Any) -> Call:
    """A call from data: {"name", "arguments"}, or "parameters". Raises ValueError."""
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise ValueError("a call is not an object with a name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments of {value['name'][:60]} are not an object")
    return value["name"], arguments


def answer_to(calls: Sequence[Call] | None, results: Sequence[Mapping[str, Any]]) -> str:
    """What the tools say to calls, a line each: the result that is recorded for just this call.

    results: {"name", "parameters" or "arguments", "result"}. Raises ValueError where they are not.
    """
    if not calls:
        return UNREADABLE
    known = {_key(call_of(entry)): str(entry.get("result", NO_RESULT)) for entry in results}
    return "\n".join(f"{call[0]}: {known.get(_key(call), NO_RESULT)}" for call in calls)


def _key(call: Call) -> Any:
    return call[0], strict_json.canonical(dict(call[1]))
