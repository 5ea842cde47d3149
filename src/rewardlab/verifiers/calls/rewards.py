"""Partial-credit rewards for tool calls."""

from __future__ import annotations

from typing import Literal

from rewardlab.core import Group, Score, Scores
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.answers import after_thinking
from rewardlab.verifiers.contract import Pair

from .calls import Call, Malformed, read_all
from .matching import Grain, agreement
from .verifier import Gold, gold_of


@reward(over="groups")
def calls_matched(
    groups: list[Group],
    *,
    grain: Literal["fine", "call", "exact"] = "fine",
    low: float = 0.0,
    high: float = 1.0,
    seconds: PositiveFloat = 2.0,
) -> Scores:
    """low + (high - low) R/S, with R the number of matching tools, parameters and values, and S its maximum.

    grain: "fine"; "call" counts whole calls; "exact" is `high` for exactly the gold calls in their order and `low` for all else.
    Calls that cannot be read earn `low`; where no call is wanted, every reply earns 0. Gold calls, tools and the ways to write
    calls are those of `function_calls`; without gold calls there is no verdict.  seconds: limit per reply in Python syntax.
    """
    rows = [t for group in groups for t in group]
    texts = [after_thinking(t.reply) for t in rows]
    said = read_all(texts, "auto", seconds)
    golds = [gold_of(Pair(t.reply, t.problem.answer, t.problem.question, t.problem.meta)) for t in rows]
    shares = iter([_share(gold, calls, grain) for gold, calls in zip(golds, said, strict=True)])

    def paid(share: float | str | None) -> Score:
        if isinstance(share, str):
            return Score(None, why=share)
        return Score(0.0, why="no call is wanted") if share is None else Score(low + (high - low) * share, why=f"R/S = {share:.3f}")

    return [[paid(next(shares)) for _ in group] for group in groups]


def _share(gold: Gold | Malformed, said: list[Call] | Malformed, grain: Grain) -> float | str | None:
    """R / S; None where no call is wanted; in words, why there is nothing to compare with."""
    if isinstance(gold, Malformed) or gold.calls is None:
        return f"the gold answer has no usable calls: {gold if isinstance(gold, Malformed) else 'tools alone'}"
    if not gold.calls:
        return None
    try:
        if isinstance(said, Malformed):
            raise said
        return agreement(gold.calls, [call.bound(gold.tools, gold.accepted is None, gold.calls) for call in said], grain)
    except Malformed:
        return 0.0
