"""Actions in the replies of a model, and games whose episodes are replayed from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rewardlab.core import Message
from rewardlab.text.answers import after_thinking

from .live import Live

_TAGGED = re.compile(r"<action>(.*?)(?:</action>|\Z)", re.S | re.I)
_LABEL = re.compile(r"^\W*(?:final\s+)?(?:action|command|move)\s*:\s*", re.I)
_EDGES = " \t\r\n.`*\"'>"
State = dict[str, Any]

HOW = "Reply with one action: on the last line, or between <action> and </action>."
"""How an action is written, for prompts."""


def action_in(reply: str) -> str:
    """The action that a reply states: between the last <action> tags, else on its last line, after "Action:" if that is there."""
    said = after_thinking(reply)
    if tagged := _TAGGED.findall(said):
        return " ".join(tagged[-1].split()).strip(_EDGES)
    lines = [line for line in said.splitlines() if line.strip(_EDGES)]
    return " ".join(_LABEL.sub("", lines[-1]).split()).strip(_EDGES) if lines else ""


def named(action: str, names: Sequence[str]) -> str | None:
    """The one of these names that an action means, whatever its case and hyphens; None if none is meant."""
    plain = {_plain(name): name for name in names}
    return plain.get(_plain(action))


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().lower()


class Game(Protocol):
    """A game that is being played.  seen: what the player sees now, as text."""

    seen: str

    def act(self, action: str) -> tuple[str, float, bool]:
        """What the player is told of this action, what it pays, and whether the game is over."""


def _closed(game: Game) -> None:
    """Let go of a game; one that holds something open says so by a method `close`."""
    getattr(game, "close", lambda: None)()


LIVE: Live[Game] = Live(drop=_closed)


def begun(of: tuple[Any, ...], begin: Callable[[], Game]) -> tuple[Message, State]:
    """The first message of a game, and the state of its episode: what game it is, and no actions."""
    game = begin()
    LIVE.keep(of, (), game)
    return Message("user", game.seen), {"of": list(of), "actions": []}


def played(state: State, action: str, begin: Callable[[], Game]) -> tuple[Message, State]:
    """One action of an episode."""
    of, before = tuple(state["of"]), state["actions"]
    game = LIVE.take(of, before, begin, lambda game, past: game.act(past))
    told, pay, over = game.act(action)
    # a new state: the caller may still hold the old one, to branch from
    state = {"of": state["of"], "actions": [*before, action]}
    if over:
        _closed(game)
    else:
        LIVE.keep(of, state["actions"], game)
    return Message("user", told, reward=float(pay), last=over), state


def invalid(action: str, names: Sequence[str]) -> str:
    """What a player is told whose action is none."""
    said = f"{action[:60]!r} is not an action here." if action else "There is no action in this reply."
    return f"{said} Actions: {', '.join(names)}."
