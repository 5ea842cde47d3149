"""A dilemma from the side of one player, against another player or a strategy."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rewardlab.core import Message, Problem, Turn, environment, seed_of
from rewardlab.errors import RewardlabError

State = dict[str, Any]


def move_of(reply: str, moves: Sequence[str]) -> int | None:
    """The number of the move that a reply consists of; None for any other reply."""
    return list(moves).index(reply.strip()) if reply.strip() in moves else None


def outcome(payoffs: Mapping[str, float], moves: Sequence[str], own: int | None, other: int | None) -> tuple[str, float]:
    """What a player is told after a round, and gets.

    Who says neither word gets the least that can be got, and the other player what both get for defecting.
    """
    by_moves = {
        (0, 0): payoffs["reward"], (0, 1): payoffs["sucker"], (1, 0): payoffs["temptation"], (1, 1): payoffs["punishment"],
    }  # fmt: skip
    missed = payoffs["sucker"] if own is None else payoffs["punishment"]
    pay = missed if own is None or other is None else by_moves[own, other]
    return f"The other: {'nothing' if other is None else moves[other]}. You get {pay:g}.", float(pay)


def _start(problem: Problem, seed: int, *, opponent: str) -> tuple[Message | None, State]:
    if missing := {"moves", "payoffs", "rounds"} - problem.meta.keys():
        raise RewardlabError(
            f"a dilemma has the columns moves, payoffs and rounds: {problem.question[:60]!r} lacks {sorted(missing)}"
        )
    game = {name: problem.meta[name] for name in ("moves", "payoffs", "rounds")}
    return None, {**game, "round": 0, "last": 0, "seed": seed, "other": None}


@environment(start=_start)
def dilemma(
    state: State, turn: Turn, *, opponent: Literal["tit-for-tat", "cooperates", "defects", "random"] = "tit-for-tat"
) -> tuple[Message | None, State]:
    """Says after each round what the other said, and pays what the player gets. The last round ends the game.

    opponent: how the other plays where no other player does (`against_itself` puts what another one says into state["other"]).
    """
    moves, k = state["moves"], state["round"]
    own = move_of(turn.text, moves)
    other = _planted(state, opponent) if state["other"] is None else move_of(state["other"], moves)
    said, pay = outcome(state["payoffs"], moves, own, other)
    # a strategy takes what is no move for a defection
    state = {**state, "round": k + 1, "last": 1 if own is None else own, "other": None}
    return Message("user", said, reward=pay, last=k + 1 >= state["rounds"]), state


def _planted(state: State, opponent: str) -> int:
    if opponent == "random":
        return random.Random(seed_of("dilemma", state["seed"], state["round"])).randrange(2)
    return {"cooperates": 0, "defects": 1, "tit-for-tat": state["last"]}[opponent]
