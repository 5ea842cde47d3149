"""Messages in rows of data: {"role", "content"}, ShareGPT's {"from", "value"}, lists of them, and such lists as JSON in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.util.messages import text_of

BEGINS = re.compile(r'\s*\[\s*\{\s*"')
"""How a conversation begins that is written as JSON."""
ROLES = {
    "system": ("system", "developer", "instructions"),
    "user": ("user", "human", "prompter", "person", "customer", "question"),
    "assistant": (
        "assistant", "gpt", "chatgpt", "bing", "bard", "claude", "gemini", "llama", "model", "bot", "chatbot", "ai", "llm", "agent",
        "answer", "response",
    ),
    "tool": ("tool", "function", "observation", "ipython", "tool_response", "function_response", "tool_result"),
}  # fmt: skip
"""How the roles are spelt in published data, in whatever case."""
_ROLE = {spelling: role for role, spellings in ROLES.items() for spelling in spellings}
_NAMED_MODEL = re.compile(r"(?:chat)?gpt-?\d\S*|(?:claude|gemini|llama)-\S+")
WHO, WHAT = ("role", "from", "speaker"), ("content", "value", "text")
"""The keys of a message under which its role and its text stand; of several the first."""
MARK = "<image>"
"""Stands in the text of a message where a picture does."""
OF_PICTURES = ("image", "image_url", "input_image")
"""The types of a content's parts that are pictures; one without a type has such a key."""


def decoded(value: Any) -> Any:
    """The value, or the conversation that a text holds as JSON; one message is a conversation of one."""
    if is_message(value):
        return [value]
    if not isinstance(value, str) or not BEGINS.match(value):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if is_conversation(found) else value


def is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(is_message(m) for m in value)


def is_message(value: Any) -> bool:
    """Whether it is {"role", "content"}, or {"from", "value"} as ShareGPT writes it; calls of tools may stand for the content."""
    return isinstance(value, dict) and isinstance(first_of(value, WHO), str) and isinstance(text_in(value), str)


def no_message(number: int, value: Any) -> str:
    """What a message lacks, in words."""
    who = first_of(value, WHO) if isinstance(value, dict) else None
    if not isinstance(who, str):
        return f"message {number} is {str(value)[:80]!r}"
    if value.get("function_call"):
        return f"message {number}, of {who!r}, has a function_call, which is of an older API, and no text: write it as tool_calls"
    return f"message {number}, of {who!r}, has no text: its content is {first_of(value, WHAT)!r:.60}"


def role_of(said: str, place: str) -> str:
    """The role that a spelling means, as chat templates know it."""
    name = said.strip().lower().strip("<|>:")
    role = _ROLE.get(name) or ("assistant" if _NAMED_MODEL.fullmatch(name) else None)
    if role is None:
        known = "; ".join(f"{role} ({', '.join(spellings[1:])})" for role, spellings in ROLES.items())
        raise RewardlabError(f"{place}: no role {said!r} of a message is known; these are: {known}")
    return role


def first_of(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of these keys that there is; None without one."""
    return next((value[key] for key in keys if key in value), None)


def text_in(message: Mapping[str, Any]) -> Any:
    """The text of a message, with its `tool_calls` after it, each in a tag, as `util.messages.text_of` writes them.

    Of a content in parts {"type": "text", "text": ...} theirs, with a mark in place of each picture; any other content as it is.
    """
    content = first_of(message, WHAT)
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(_said(part), str) for part in content):
        content = "".join(map(_said, content))
    calls = message.get("tool_calls")
    # without its calls a reply would be empty, and the results that follow would answer nothing
    if not isinstance(calls, list) or not calls or not (content is None or isinstance(content, str)):
        return content
    return text_of({"content": content, "tool_calls": calls})


def _said(part: Mapping[str, Any]) -> Any:
    return MARK if is_picture(part) else part.get("text")


def is_picture(part: Any) -> bool:
    """Whether a part of a content is a picture: {"type": "image"}, {"type": "image_url", ...}, or {"image": ...}."""
    if not isinstance(part, Mapping):
        return False
    # a table gives every part all keys, so that one of text has an empty picture
    kind = part.get("type") or next((key for key in OF_PICTURES if part.get(key) is not None), "text")
    return kind in OF_PICTURES
