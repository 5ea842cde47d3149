"""How good the two replies of a pair are, in the columns of published data, as `chosen_score` and `rejected_score`.

Such data says it by a number for each reply, by how much better the chosen one is, or by the chance that it is the better one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import number_of

SCORES = ("chosen_score", "rejected_score")
EACH = (
    ("chosen_rating", "rejected_rating"),
    ("chosen-rating", "rejected-rating"),
    ("chosen_scores", "rejected_scores"),
    ("score_chosen", "score_rejected"),
    ("chosen_reward", "rejected_reward"),
    ("chosen_votes", "rejected_votes"),
)
"""A number for each reply: UltraFeedback in its binarised forms, Argilla's sets."""
MARGIN = "margin"
"""How much better the chosen reply is, as TRL's RewardTrainer reads it."""
CHANCES = ("label", "soft_label", "chosen_probability")
"""The chance that the chosen reply is the better one, from 0 to 1."""


def with_scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a pair with the columns `chosen_score` and `rejected_score`, where it says what they are in others.

    A margin m becomes m and 0, a chance p becomes p and 1 - p: their difference, and their share, are what was said.
    """
    if not all(row.get(side) is not None for side in ("chosen", "rejected")) or any(name in row for name in SCORES):
        return dict(row)
    _, scores = _said(row)
    return {**row, **dict(zip(SCORES, scores, strict=False))}


def origin(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that a row's `chosen_score` and `rejected_score` come from: themselves, unless `with_scores` made them; none,
    where it has no such numbers."""
    if not all(number_of(row.get(name)) is not None for name in SCORES):
        return ()
    names, scores = _said(row)
    return names if scores == tuple(map(row.get, SCORES)) else SCORES


def _said(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Names and values: of the first columns that hold numbers; nothing, where none do."""
    for both in EACH:
        if all(number_of(row.get(name)) is not None for name in both):
            return both, tuple(map(row.get, both))
    if (margin := number_of(row.get(MARGIN))) is not None:
        return (MARGIN,), (margin, 0.0)
    for name in CHANCES:
        if (chance := number_of(row.get(name))) is not None and 0 <= chance <= 1:
            return (name,), (chance, 1 - chance)
    return (), ()
