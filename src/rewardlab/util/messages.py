"""Messages as chats and trainers write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """What a message says: its text, or that of its parts, and its `tool_calls` as models write them, each in a tag."""
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content if isinstance(part, Mapping)]
    calls = [call.get("function") or call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    written = [json.dumps({"name": call.get("name"), "arguments": _given(call)}, default=str, ensure_ascii=False) for call in calls]
    said = "".join(map(str, parts))
    return "\n".join([*([said] if said or not written else []), *(f"<tool_call>\n{call}\n</tool_call>" for call in written)])


def _given(call: Mapping[str, Any]) -> Any:
    """The arguments of a call, which the API writes as JSON in a text."""
    arguments = call.get("arguments", {})
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def said(given: Any) -> Any:
    """What the last of a list of messages says; anything else, a plain text above all, as it is."""
    return text_of(given[-1]) if isinstance(given, list | tuple) and given and isinstance(given[-1], Mapping) else given
