"""Preference pairs from scored replies, by the gap between their scores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from rewardlab.errors import unknown

CHOICES = {
    "best-worst": "the best reply against the worst",
    "best-random": "the best reply against any other that is worse by the gap",
    "all": "every two replies whose scores differ by the gap",
    "random": "two replies at random, of those whose scores differ by the gap",
}


@dataclass(frozen=True)
class Pair:
    """Two replies to one prompt, and their scores."""

    chosen: str
    rejected: str
    chosen_score: float
    rejected_score: float

    @property
    def gap(self) -> float:
        return self.chosen_score - self.rejected_score


def pairs(
    replies: Sequence[str], scores: Sequence[float | None], choose: str = "best-worst", gap: float = 0.0, seed: int | str = 0
) -> list[Pair]:
    """Pairs of replies to one prompt whose scores differ, by at least `gap`; those of "all" with the widest gap first.

    Replies without a score are left out. Of equal texts the first counts, and of equally good or bad replies the first too; seed:
    of the choices at random.
    """
    if choose not in CHOICES:
        raise unknown("choice of pairs", choose, CHOICES)
    scored: dict[str, float] = {}
    for reply, score in zip(replies, scores, strict=True):
        if score is not None:
            scored.setdefault(reply, score)
    # sorted keeps the order of equals: the first of the best, and then, of the worst, the first too
    ranked = sorted(scored.items(), key=lambda item: -item[1])
    found = [Pair(a, b, x, y) for (a, x), (b, y) in combinations(ranked, 2) if x > y and x - y >= gap]
    if not found or choose == "all":
        return sorted(found, key=lambda pair: -pair.gap)
    if choose == "random":
        return [random.Random(f"pairs {seed}").choice(found)]
    of_best = [pair for pair in found if pair.chosen == ranked[0][0]]
    if choose == "best-random":
        return [random.Random(f"pairs {seed}").choice(of_best)]
    return [max(of_best, key=lambda pair: pair.gap)]
