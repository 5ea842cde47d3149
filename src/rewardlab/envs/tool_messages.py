"""Tools in messages: how a policy is told of them, which calls a reply makes, and what they gave.

A reply may call in every form that models write (`verifiers/calls`). `policies/chat.py` writes these messages for a model: by its
chat template's own form, or in words where that has none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rewardlab.core import Message
from rewardlab.text.answers import after_thinking
from rewardlab.verifiers.calls.calls import Call, Malformed, read_all, tries

TOLD = (
    "You may call these functions, as often as you need to:\n\n{schemas}\n\nTo call one, write its name and arguments as JSON "
    'between <tool_call> and </tool_call>, such as <tool_call>{{"name": "NAME", "arguments": {{"ARGUMENT": "VALUE"}}}}'
    "</tool_call>. What it returns is shown to you. When you need no further call, give your answer."
)
"""For models whose chat template has no words of its own for tools."""
SHOWN = 4000
"""Characters that are shown of a result or a document, where nothing else is said: a long one would fill the policy's context."""
SECONDS = 1.0
"""For reading calls in Python's syntax, which a process of its own parses."""


def told_of(schemas: Sequence[Mapping[str, Any]]) -> Message:
    """The message that opens an episode with these tools, {"type": "function", "function": {...}} each."""
    words = TOLD.format(schemas="\n".join(json.dumps(schema["function"]) for schema in schemas))
    return Message("system", words, tools=json.dumps(list(schemas)))


def answered(results: Sequence[str]) -> Message:
    """What the calls of one reply gave, in their order."""
    return Message("tool", "\n\n".join(results), results=tuple(results))


def cut(result: str, shown: int = SHOWN) -> str:
    """At most so many characters of a result, and how many more there are."""
    return result if len(result) <= shown else f"{result[:shown]} ... ({len(result) - shown} more characters)"


def calls_of(reply: str, known: Collection[str]) -> list[Call] | Malformed | None:
    """The calls of a reply after its thinking; None where it makes none. Malformed: they cannot be read.  known: names of tools."""
    said = after_thinking(reply)
    # Llama's JSON and calls in Python's syntax have no mark: they are calls where they name a tool
    if not tries(said) and not (said.lstrip()[:1] in ("{", "[", "`") and any(name in said for name in known)):
        return None
    (found,) = read_all([said], "auto", SECONDS)
    if isinstance(found, Malformed):
        return found if tries(said) else None
    return (found if tries(said) or any(call.name in known for call in found) else None) or None
