"""Conversations in the user's own data: lists of {"role", "content"}, of ShareGPT's {"from", "value"}, or such a list as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.core import Message
from rewardlab.data.values import is_missing
from rewardlab.errors import RewardlabError

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


def messages_of(value: Any, place: str) -> list[Message]:
    value = decoded(value)
    if isinstance(value, str):
        return [Message("user", value)]
    if not isinstance(value, list):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
    if bad := next(((number, m) for number, m in enumerate(value, 1) if not is_message(m)), None):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}; {_no_message(*bad)}")
    return [message(m, place) for m in value]


def _no_message(number: int, value: Any) -> str:
    """What a message lacks, in words."""
    who = _first(value, WHO) if isinstance(value, dict) else None
    if not isinstance(who, str):
        return f"message {number} is {str(value)[:80]!r}"
    if value.get("tool_calls") or value.get("function_call"):
        return f"message {number}, of {who!r}, has calls of tools and no text: write them into its content, as models write them"
    return f"message {number}, of {who!r}, has no text: its content is {_first(value, WHAT)!r:.60}"


def decoded(value: Any) -> Any:
    """The value, or the conversation that a text holds as JSON; one message is a conversation of one."""
    if is_message(value):
        return [value]
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
    return isinstance(value, dict) and isinstance(_first(value, WHO), str) and isinstance(_text(_first(value, WHAT)), str)


def message(value: Mapping[str, Any], place: str) -> Message:
    """Raises RewardlabError, with the roles that are known, for a role that is not."""
    return Message(role_of(_first(value, WHO), place), _text(_first(value, WHAT)))


def role_of(said: str, place: str) -> str:
    """The role that a spelling means, as chat templates know it."""
    name = said.strip().lower().strip("<|>:")
    role = _ROLE.get(name) or ("assistant" if _NAMED_MODEL.fullmatch(name) else None)
    if role is None:
        known = "; ".join(f"{role} ({', '.join(spellings[1:])})" for role, spellings in ROLES.items())
        raise RewardlabError(f"{place}: no role {said!r} of a message is known; these are: {known}")
    return role


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if key in value), None)


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
        return alternating([message(m, place) for m in value], place)
    raise RewardlabError(f"{place}: a completion is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")


def alternating(messages: list[Message], place: str) -> str | list[str]:
    """Replies, and the user's messages between them, as the rollout `recorded` reads them."""
    roles = [m.role for m in messages]
    if roles != [("assistant", "user")[i % 2] for i in range(len(roles))]:
        raise RewardlabError(
            f"{place}: after the prompt, messages of assistant and user must take turns; they are {', '.join(roles)}"
        )
    return messages[0].text if len(messages) == 1 else [m.text for m in messages]


def preferred(value: Any, prompt: Sequence[Message], name: str, place: str) -> Any:
    """The reply of a pair, `chosen` or `rejected`: what follows the prompt, where it is written as a whole conversation.

    One reply is a text; several of a conversation are a list in which the user's messages stand between them. None: there is none,
    and "" is an empty one.
    """
    value = decoded(value)
    if is_missing(value):
        # an empty reply is a column that is there
        return "" if isinstance(value, str) else None
    if isinstance(value, list) and not is_conversation(value):
        if not all(isinstance(text, str) for text in value):
            raise RewardlabError(f"{place}: {name} is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
        raise RewardlabError(
            f"{place}: {name} is a list of {len(value)} texts; a pair has one reply on each side: write a row for each pair, "
            "or turns of a conversation as a list of {'role', 'content'}"
        )
    if not isinstance(value, list):
        return value
    return alternating(_after(prompt, [message(m, place) for m in value], name, place), place)


def _after(prompt: Sequence[Message], messages: list[Message], name: str, place: str) -> list[Message]:
    """What follows the prompt in a conversation that may begin with it."""
    said = [m for m in messages if m.role != "system"]
    asked = [m for m in prompt if m.role != "system"]
    if said[: len(asked)] == asked:
        said = said[len(asked) :]
    elif last := max((i for i, m in enumerate(said) if m == asked[-1]), default=-1) + 1:
        # the prompt is the last question alone, without what was said before
        said = said[last:]
    elif said and said[0].role == "user":
        raise RewardlabError(f"{place}: {name} is a conversation that does not begin with the row's prompt")
    if not said:
        raise RewardlabError(f"{place}: {name} ends without a reply")
    return said


def worked(value: Any, place: str) -> Any:
    """The last reply of a worked solution that is written as a conversation; anything else as it is."""
    value = decoded(value)
    return message(value[-1], place).text if is_conversation(value) else value
