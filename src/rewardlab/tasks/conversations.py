"""Conversations in the user's own data: lists of {"role", "content"}, of ShareGPT's {"from", "value"}, or such a list as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Message
from rewardlab.data.conversations import WHO, decoded, first_of, is_conversation, is_message, no_message, role_of, text_in
from rewardlab.data.values import is_missing
from rewardlab.errors import RewardlabError


def messages_of(value: Any, place: str) -> list[Message]:
    value = decoded(value)
    if isinstance(value, str):
        return [Message("user", value)]
    if not isinstance(value, list):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
    if bad := next(((number, m) for number, m in enumerate(value, 1) if not is_message(m)), None):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}; {no_message(*bad)}")
    return [message(m, place) for m in value]


def message(value: Mapping[str, Any], place: str) -> Message:
    """Raises RewardlabError, with the roles that are known, for a role that is not."""
    return Message(role_of(first_of(value, WHO), place), text_in(value))


def refuse_calls(messages: Sequence[Mapping[str, Any]], place: str) -> None:
    """Raise RewardlabError for a reply to learn from that calls a tool: its text alone would be learnt, without the call."""
    # where results follow, `alternating` says what can be done
    if any(m.get("tool_calls") for m in messages) and not any(m.get("role") == "tool" for m in messages):
        raise RewardlabError(
            f"{place}: a reply calls a tool (tool_calls), and recorded calls of tools are not learnt from: write the call as the "
            "text of the reply, or let the policy call the tools itself (--tools FILE.py:NAME, docs/ENVIRONMENTS.md)"
        )


def replies(value: Any, place: str) -> str | list[str]:
    """The replies of a completion: a text, or messages that begin with the assistant's."""
    value = decoded(value)
    if isinstance(value, str) and value.strip():
        return value
    if is_conversation(value):
        refuse_calls(value, place)
        return alternating([message(m, place) for m in value], place)
    raise RewardlabError(f"{place}: a completion is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")


def alternating(messages: list[Message], place: str) -> str | list[str]:
    """Replies, and the user's messages between them, as the rollout `recorded` reads them."""
    roles = [m.role for m in messages]
    if "tool" in roles:
        raise RewardlabError(
            f"{place}: after the prompt, messages of tools follow ({', '.join(roles)}), and recorded calls of tools are not learnt "
            "from: cut the conversation before the first call, or let the policy call the tools itself (rewardlab train grpo "
            "--tools FILE.py:NAME, docs/ENVIRONMENTS.md)"
        )
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
    refuse_calls(value, place)
    return alternating(_after(prompt, [message(m, place) for m in value], name, place), place)


def _after(prompt: Sequence[Message], messages: list[Message], name: str, place: str) -> list[Message]:
    """What follows the prompt in a conversation that may begin with it."""
    said = [m for m in messages if m.role != "system"]
    # without the pictures, of which the prompt alone holds those of the row
    asked = [replace(m, images=()) for m in prompt if m.role != "system"]
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
