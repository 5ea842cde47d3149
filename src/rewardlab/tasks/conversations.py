"""Conversations in the user's own data: lists of {"role", "content"}, of ShareGPT's {"from", "value"}, or such a list as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rewardlab.core import Message
from rewardlab.errors import RewardlabError

BEGINS = re.compile(r'\s*\[\s*\{\s*"')
"""How a conversation begins that is written as JSON."""
ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant"}
"""Roles as ShareGPT names them."""


def messages_of(value: Any, place: str) -> list[Message]:
    value = decoded(value)
    if isinstance(value, str):
        return [Message("user", value)]
    if not isinstance(value, list) or not all(is_message(m) for m in value):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
    return [message(m) for m in value]


def decoded(value: Any) -> Any:
    """The value, or the conversation that a text holds as JSON."""
    if not isinstance(value, str) or not BEGINS.match(value):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value
    return found if is_conversation(found) else value


def is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(is_message(m) for m in value)


def is_message(value: Any) -> bool:
    """Whether it is {"role", "content"}, or {"from", "value"} as ShareGPT writes it."""
    return isinstance(value, dict) and any(
        isinstance(value.get(role), str) and isinstance(_text(value.get(content)), str)
        for role, content in (("role", "content"), ("from", "value"))
    )


def message(value: Mapping[str, Any]) -> Message:
    role = value["role"] if "role" in value else ROLES.get(value["from"], value["from"])
    return Message(role, _text(value["content"] if "role" in value else value["value"]))


def _text(content: Any) -> Any:
    """The text of a message: of its parts {"type": "text", "text": ...}, where it is written in parts."""
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        return "".join(part["text"] for part in content)
    return content


def replies(value: Any, place: str) -> str | list[str]:
    """The replies of a completion: a text, or messages that begin with the assistant's."""
    value = decoded(value)
    if isinstance(value, str) and value.strip():
        return value
    if is_conversation(value):
        return alternating([message(m) for m in value], place)
    raise RewardlabError(f"{place}: a completion is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")


def alternating(messages: list[Message], place: str) -> str | list[str]:
    """Replies, and the user's messages between them, as the rollout `recorded` reads them."""
    roles = [m.role for m in messages]
    if roles != [("assistant", "user")[i % 2] for i in range(len(roles))]:
        raise RewardlabError(
            f"{place}: after the prompt, messages of assistant and user must take turns; they are {', '.join(roles)}"
        )
    return messages[0].text if len(messages) == 1 else [m.text for m in messages]


def last_text(value: Any) -> Any:
    """The reply at the end of a conversation, for pairs that are written as whole conversations."""
    value = decoded(value)
    return message(value[-1]).text if is_conversation(value) else value
