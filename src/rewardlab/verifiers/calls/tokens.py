"""Calls between the special tokens of a model. Linear time; nothing is executed.

<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME, and a block of JSON<｜tool▁call▁end｜>                        DeepSeek V3 and R1
<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>                                             DeepSeek V3.1
<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>                    Kimi K2
<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{"x": 1}<|call|>                        gpt-oss (Harmony)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardlab.text import strict_json

OPENS = re.compile(r"<[｜|]tool[▁_]calls?[▁_](?:section[▁_])?begin[｜|]>|to=functions\.[^<\s]{0,200}[^<]{0,40}<\|")
_BEGINS = re.compile(r"<[｜|]tool[▁_]call[▁_]begin[｜|]>")
_ENDS = re.compile(r"<[｜|]tool[▁_]call[▁_]end[｜|]>")
_PARTS = re.compile(r"<[｜|]tool[▁_](?:sep|call[▁_]argument[▁_]begin)[｜|]>")
_NUMBERED = re.compile(r"functions\.(.{1,200}):[0-9]{1,4}")
_TO = re.compile(
    r"to=functions\.([A-Za-z_][\w.-]{0,200})(?:\s|<\|channel\|>|<\|constrain\|>|commentary|analysis|json|code){0,12}<\|message\|>"
)
_MESSAGE_ENDS = re.compile(r"<\|(?:call|end|start|channel|return)\|>")


def calls_in(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The names and arguments of all calls in a text that `OPENS` finds. Raises ValueError."""
    before, *bodies = _BEGINS.split(text)
    found = [_between(body) for body in bodies] if bodies else _sent(text)
    if not found:
        raise ValueError("no call follows the token that opens calls")
    if bodies and _ENDS.search(before):
        raise ValueError("a call ends that did not begin")
    return found


def _between(body: str) -> tuple[str, Mapping[str, Any]]:
    """One call, up to the token that ends it."""
    call, *after = _ENDS.split(body)
    if len(after) != 1:
        raise ValueError("a call is not closed" if not after else "a call is closed twice")
    name, *rest = _PARTS.split(call)
    if len(rest) != 1:
        raise ValueError("a call is no name and arguments with one token between them")
    name, written = name.strip(), rest[0]
    head, fence, block = written.partition("```")
    if name == "function" and fence and block.rstrip().endswith("```"):
        name, written = head.strip(), block.rstrip()[:-3].removeprefix("json")
    elif numbered := _NUMBERED.fullmatch(name):
        name = numbered[1]
    return name, _arguments(name, written)


def _sent(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The calls that are messages to functions."""
    heads = list(_TO.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    bodies = [_MESSAGE_ENDS.split(text[head.end() : end], maxsplit=1)[0] for head, end in zip(heads, ends, strict=True)]
    return [(head[1], _arguments(head[1], body)) for head, body in zip(heads, bodies, strict=True)]


def _arguments(name: str, written: str) -> Mapping[str, Any]:
    value = strict_json.parse(written.strip())
    if not isinstance(value, Mapping):
        raise ValueError(f"the arguments of {name[:60]} are not an object")
    return value
