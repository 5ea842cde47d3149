"""What the replies of an agent ask for: searches in tags or lines (`text/searches.py`), or calls of tools in any form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rewardlab.envs.tool_messages import calls_of
from rewardlab.text.answers import after_thinking
from rewardlab.text.searches import ASK, queries_of, query_of
from rewardlab.verifiers.calls.calls import Call, tries


def asks(reply: str) -> bool:
    """Whether a reply searches or calls, however broken the call: it is no answer then."""
    return query_of(reply) is not None or tries(after_thinking(reply))


def asked_in(reply: str, mark: str = ASK, separator: str = "") -> list[str]:
    """All queries of a reply, as `queries_of`; of calls of tools the texts and numbers of their arguments, each call a query."""
    if searched := queries_of(reply, mark, separator):
        return searched
    calls = calls_of(reply, ()) if tries(after_thinking(reply)) else None
    return [_words(call) for call in calls] if isinstance(calls, list) else []


def _words(call: Call) -> str:
    return " ".join(_plain([*call.positional, *call.arguments.values()])) or call.name


def _plain(values: Iterable[Any]) -> list[str]:
    found = []
    for value in values:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
        found += [str(value)] if inner is None else _plain(inner)
    return found
