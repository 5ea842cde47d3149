"""Requests and responses of chat completions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeGuard

from rewardlab.clients.retries import Trouble, checked

AROUND = 64
"""Tokens that a chat template may add to a prompt, and to each of its messages."""
MARK = "<image>"
"""Stands in the text of a message where a picture does."""
IMAGE = 16_384
"""Tokens that a picture may come to: the most of Qwen2-VL, and more than other models make of one."""


MARKS: dict[str, Callable[[tuple[str, ...]], Any]] = {
    "grammar": lambda marks: "root ::= " + " | ".join(json.dumps(mark) for mark in marks),
    "structured_outputs": lambda marks: {"choice": list(marks)},
    "regex": lambda marks: "|".join(map(re.escape, marks)),
}
"""How servers are told that a reply is one of some texts: llama.cpp's GBNF, vLLM (from 0.12) and SGLang, by the field's name."""
NEUTRAL = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
"""Settings that leave the distribution as it is. For one that a request leaves out, vLLM takes that of the checkpoint's
generation_config.json, and llama.cpp one of its own."""
WRITTEN = ("content", "tool_calls", "function_call", "refusal")
"""What of a message holds what was written."""


@dataclass(frozen=True)
class Request:
    """One reply that is asked for.

    messages: (role, text) pairs.  likely: how many of the likeliest tokens are wanted at each position, with log-probs, where the
    server gives them.  sample: which of several replies to the same request this is.  prefill: the last message is of the
    assistant, and is to be continued.  marks: the texts of which the reply shall be one, where the server is told so.
    template: what the server's chat template is told beside the messages, as a JSON object; "": what the model's name says of that.
    images: of each message the addresses (`data:`) of what it shows: at its marks <image> where it has as many, else before its
    text; empty where no message shows anything.
    """

    messages: tuple[tuple[str, str], ...]
    max_new: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    likely: int = 0
    sample: int = 0
    prefill: bool = False
    marks: tuple[str, ...] = ()
    images: tuple[tuple[str, ...], ...] = ()
    template: str = ""

    @property
    def most_read(self) -> int:
        """The most tokens that the prompt can have: a token of text is at least a byte."""
        shown = IMAGE * sum(map(len, self.images))
        return AROUND + shown + sum(AROUND + len(text.encode("utf-8", "replace")) for _, text in self.messages)

    def body(
        self, model: str, limit: str = "max_tokens", marks: str = "", neutral: bool = False,
        template: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The request as JSON. What is as servers have it anyway is left out, since some refuse what they do not know.

        template: what the chat template is told, where the request does not say.  marks: how the server is told of the marks;
        empty: not at all.  neutral: settings that change nothing are sent, too.
        """
        body: dict[str, Any] = {
            "model": model, "messages": self._messages(), limit: self.max_new,
            "temperature": self.temperature,
        }  # fmt: skip
        optional = {
            "top_p": self.top_p if self.top_p < 1 else None, "top_k": self.top_k or None, "seed": self.seed,
            "stop": list(self.stop) or None, "logprobs": True if self.likely else None, "top_logprobs": self.likely or None,
            "chat_template_kwargs": json.loads(self.template) if self.template else dict(template or {}) or None,
            "add_generation_prompt": False if self.prefill else None, "continue_final_message": True if self.prefill else None,
        }  # fmt: skip
        told = {marks: MARKS[marks](self.marks)} if marks and self.marks else {}
        settings = {name: value for name, value in optional.items() if value is not None}
        return body | (NEUTRAL if neutral else {}) | settings | told

    def _messages(self) -> list[dict[str, Any]]:
        each = self.images or [()] * len(self.messages)
        return [
            {"role": role, "content": parts_of(text, shown) if shown else text}
            for (role, text), shown in zip(self.messages, each, strict=True)
        ]


def parts_of(text: str, addresses: Sequence[str]) -> list[dict[str, Any]]:
    """A text with pictures as the parts of a content: each at a mark <image>, where there are as many, else all before it."""
    shown = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    said = text.split(MARK)
    if len(said) != len(shown) + 1:
        return [*shown, {"type": "text", "text": text}]
    found: list[dict[str, Any]] = []
    for part, after in zip_longest(said, shown):
        found += [{"type": "text", "text": part}] if part else []
        found += [after] if after else []
    return found


@dataclass(frozen=True)
class Token:
    """A token of a reply, and the log-probs of the likeliest tokens in its place, by their text."""

    text: str
    likely: dict[str, float]


@dataclass(frozen=True)
class Reply:
    """What a model said.

    ended: False where it reached the most tokens.  tokens: as the server counts them; None if it does not.  chances: per token;
    empty where the server gives none.  stopped_by: the stop string that ended it, which is not in the text; None where no stop
    string did, or `tells` is False: then the server does not say.
    """

    text: str
    ended: bool = True
    tokens: int | None = None
    chances: tuple[Token, ...] = ()
    stopped_by: str | None = None
    tells: bool = False


@dataclass(frozen=True)
class Failure:
    """No reply came, for this reason, however often it was tried."""

    why: str
    timed_out: bool = False


def reply_of(document: Any) -> Reply:
    """The reply in an answer. Raises Trouble for an answer that holds none."""
    choice = checked(document, "choices", 0)
    text = checked(choice, "message", "content")
    if text is not None and not isinstance(text, str):
        raise Trouble(f"the answer's text is of another kind: {str(text)[:100]}")
    by, tells = ended_by(choice)
    counts = counted(document)
    return Reply(text or "", choice.get("finish_reason") != "length", counts[1] if counts else None, _chances(choice), by, tells)


def is_blank(document: Any) -> bool:
    """Whether an answer holds a message in which nothing was written, though it had not run out of tokens: a failure of the server,
    more often than not."""
    choices = document.get("choices") if isinstance(document, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    return isinstance(message, dict) and not any(map(message.get, WRITTEN)) and choice.get("finish_reason") != "length"


def ended_by(choice: dict[str, Any]) -> tuple[str | None, bool]:
    """The stop string that ended a reply, and whether the server says so: vLLM and SGLang name it, or an end token's number."""
    marks = [choice[name] for name in ("stop_reason", "matched_stop") if name in choice]
    return next((mark for mark in marks if isinstance(mark, str)), None), bool(marks)


def counted(document: Any) -> tuple[int, int] | None:
    """The tokens of the prompt and of the reply; None if the server does not say."""
    usage = document.get("usage") if isinstance(document, dict) else None
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens", 0)
    return (read, written) if _is_count(read) and _is_count(written) else None


def _is_count(n: Any) -> TypeGuard[int]:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 0


def _chances(choice: dict[str, Any]) -> tuple[Token, ...]:
    """The log-probs of a reply; none of them where any is not of the known form, since positions would shift."""
    try:
        found = (choice.get("logprobs") or {}).get("content") or []
        return tuple(Token(str(t["token"]), _likely(t)) for t in found)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _likely(token: dict[str, Any]) -> dict[str, float]:
    pairs = [token, *(token.get("top_logprobs") or [])]
    return {str(t["token"]): float(t["logprob"]) for t in pairs if not math.isnan(float(t["logprob"]))}
