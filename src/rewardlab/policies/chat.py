"""Messages through a chat template, with the tools that a policy may call and what these gave.

A template that knows tools writes their schemas and their results in its own form (Qwen's and Hermes's <tool_call>, Llama's JSON).
For one that does not, what the message says in words goes before the first message, and results come from the user between
<tool_response> and </tool_response>. A template that refuses a system message, or two of the user in a row, gets one of the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rewardlab.core import Message
from rewardlab.errors import RewardlabError

REPLY = "\u241fREPLY\u241f"
"""Stands for a reply where a template is asked what it writes around one."""
RESULT = "\u241fRESULT\u241f"
"""Stands for a tool's result where a template is asked whether it writes any."""
MARKS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>")
"""Tokens by which chat models end a turn."""
THINK = "<think>"
ROLES = ("system", "user", "assistant", "tool")
"""Those of messages that chat templates write."""


def rendered(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The text of messages by the chat template, up to where the next reply begins. The tokenizer must have a template.

    Raises RewardlabError for a role that templates do not know, and where the template refuses the messages.
    """
    _check_roles(messages)
    schemas = [schema for m in messages if m.tools for schema in json.loads(m.tools)]
    theirs = bool(schemas) and _writes_tools(tokenizer)
    said = [m for m in messages if not m.tools] if theirs else _tools_in_words(messages)
    said = said if _writes_results(tokenizer) else [_result_in_words(m) for m in said]
    turns = [{"role": m.role, "content": text} for m in _accepted(tokenizer, said) for text in m.results or (m.text,)]
    # templates ask whether there are tools, which an empty list would answer differently
    given = {"tools": schemas} if theirs else {}
    return written(tokenizer, turns, add_generation_prompt=True, **given)


def _check_roles(messages: Sequence[Message]) -> None:
    """Refuse roles that templates do not know: most leave such a message out, and nobody would see that."""
    if other := next((m for m in messages if m.role not in ROLES), None):
        raise RewardlabError(
            f"chat templates know no role {other.role!r} of a message ({other.text[:60]!r}): write one of {', '.join(ROLES)}; what "
            'an environment says is Message("user", ...)'
        )


def _accepted(tokenizer: Any, messages: Sequence[Message]) -> list[Message]:
    """The messages as the template takes them: Gemma's refuses one of the system, and several refuse two of the user in a row, as a
    prompt and the first words of an environment are. They are one message then."""
    asked, said = _Asked(tokenizer), list[Message]()
    for m in messages:
        if m.role == "system" and not _shows(asked, "a later system" if said else "a system"):
            m = replace(m, role="user")
        if said and said[-1].role == m.role == "user" and not _shows(asked, "two of the user"):
            said[-1] = replace(said[-1], text=f"{said[-1].text}\n\n{m.text}", images=(*said[-1].images, *m.images))
        else:
            said.append(m)
    return said


def written(tokenizer: Any, turns: Sequence[Mapping[str, str]], **given: Any) -> str:
    """Turns of role and content by the chat template. Some models that see have one that writes a list of parts, and no text.

    Raises RewardlabError for what the template does not write: Gemma's knows no system message, others no roles in another order.
    """
    said: list[dict[str, Any]] = [dict(turn) for turn in turns]
    if not _shows(_Asked(tokenizer), "texts"):
        said = [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in said]
    try:
        return tokenizer.apply_chat_template(said, tokenize=False, **given)
    except Exception as problem:
        roles = ", ".join(str(turn["role"]) for turn in turns)
        raise RewardlabError(f"the model's chat template refuses the messages ({roles}): {problem}") from problem


def dialogue(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The same; without a template, the texts line by line."""
    return rendered(tokenizer, messages) if tokenizer.chat_template else "".join(f"{m.text}\n" for m in messages)


def opened(tokenizer: Any) -> str:
    """A <think> with which the template has a reply begin, as those of DeepSeek-R1's distillates and of Qwen3.5 do, with the line
    break after it: the model goes on in its thoughts. "" where it opens none."""
    return _opened(_Asked(tokenizer)) if getattr(tokenizer, "chat_template", None) else ""


def after_opened(tokenizer: Any, reply: str) -> str:
    """A reply from elsewhere as what goes on after the template has opened its thoughts: without a <think> of its own."""
    opening, text = opened(tokenizer), reply.lstrip()
    return text[len(THINK) :].removeprefix(opening[len(THINK) :]) if opening and text.startswith(THINK) else reply


@lru_cache(maxsize=64)
def _opened(asked: _Asked) -> str:
    try:
        text = written(asked.tokenizer, [{"role": "user", "content": "?"}], add_generation_prompt=True)
    except RewardlabError:
        return ""
    _, tag, after = text.rpartition(THINK)
    return tag + after if not after.strip() else ""


def since_reply(tokenizer: Any, new: Sequence[Message], end: str, ended: bool, last: str = "") -> str:
    """What the template puts between the end of a reply and the next one.  end: the token that closes a reply by the template.
    ended: whether the reply has an end token, `last`: by default that one."""
    # render a dialogue with a marker as its reply, and keep what the template writes after it
    text = dialogue(tokenizer, (Message("user", "?"), Message("assistant", REPLY), *_unmarked(tokenizer, new)))
    after = text[text.index(REPLY) + len(REPLY) :]
    stripped = after.lstrip()
    # the reply sampled an end token itself: no other must follow it, be it the one of earlier turns (gpt-oss's), or the one that
    # begins the next turn (GLM's)
    closing = next((mark for mark in (last, end, *MARKS) if mark and stripped.startswith(mark)), None) if ended else None
    return after if closing is None else stripped[len(closing) :]


def _unmarked(tokenizer: Any, messages: Sequence[Message]) -> list[Message]:
    """The messages with a space in each of the model's special tokens: what a search or a tool found may hold them, and would
    end its own turn and begin one of the policy's."""
    marks = _special(tokenizer)

    def plain(text: str) -> str:
        return marks.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", text)

    return [replace(m, text=plain(m.text), results=tuple(map(plain, m.results))) for m in messages]


@lru_cache(maxsize=8)
def _special(tokenizer: Any) -> re.Pattern[str]:
    """What finds a tokenizer's special tokens in a text."""
    special = [re.escape(token.content) for token in tokenizer.added_tokens_decoder.values() if token.special]
    return re.compile("|".join(sorted(special, key=len, reverse=True)) or r"(?!)")


def in_words(messages: Sequence[Message]) -> list[Message]:
    """The messages with tools and their results as texts of system and user, for a model that knows nothing of tools.

    Raises RewardlabError for a role that templates do not know.
    """
    _check_roles(messages)
    return [_result_in_words(m) for m in _tools_in_words(messages)]


def _tools_in_words(messages: Sequence[Message]) -> list[Message]:
    """What messages with tools say in words goes before the first of the others: some templates refuse a system message."""
    said, text = [m for m in messages if not m.tools], "\n\n".join(m.text for m in messages if m.tools)
    if not text or not said:
        return [*said, Message("user", text)] if text else said
    return [replace(said[0], text=f"{text}\n\n{said[0].text}"), *said[1:]]


def _result_in_words(message: Message) -> Message:
    if message.role != "tool":
        return message
    results = message.results or (message.text,)
    return Message("user", "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in results))


def _writes_tools(tokenizer: Any) -> bool:
    return _shows(_Asked(tokenizer), "tools")


def _writes_results(tokenizer: Any) -> bool:
    return _shows(_Asked(tokenizer), "results")


class _Asked:
    """A tokenizer that is known by its template: copies of a policy ask the same."""

    def __init__(self, tokenizer: Any):
        self.tokenizer, self.template = tokenizer, json.dumps(tokenizer.chat_template, sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.template == other.template

    def __hash__(self) -> int:
        return hash(self.template)


@lru_cache(maxsize=64)
def _shows(asked: _Asked, what: str) -> bool:
    """Whether the template writes a schema ("tools"), a message of the role tool ("results"), plain text that it is given
    ("texts"), a system message at the beginning or after another one, or two messages of the user in a row."""
    function = {"name": RESULT, "description": RESULT, "parameters": {"type": "object", "properties": {}}}
    asks, said, shown = (dict[str, Any](role=role, content=x) for role, x in (("user", "?"), ("assistant", "!"), ("user", RESULT)))
    system: dict[str, Any] = {"role": "system", "content": RESULT}
    turns: list[dict[str, Any]] = {
        "texts": [shown], "tools": [asks], "results": [asks, said, {"role": "tool", "content": RESULT}],
        "a system": [system, asks], "a later system": [asks, said, system, asks], "two of the user": [asks, shown],
    }[what]  # fmt: skip
    given: dict[str, Any] = {"tools": [{"type": "function", "function": function}]} if what == "tools" else {}
    if what != "texts" and not _shows(asked, "texts"):
        # one that knows lists of parts alone writes nothing of a text
        turns = [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in turns]
    try:
        text = asked.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **given)
    except Exception:
        # a template refuses in words of its own what it does not know
        return False
    # JSON may escape the marks around the word. A template that writes any role by its name has no form for results
    return "RESULT" in text and (what != "results" or "tool" in asked.template)
