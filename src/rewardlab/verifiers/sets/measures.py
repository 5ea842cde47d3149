"""Measures of a ranking against graded relevance. A repeated item counts only where it occurs first.

Definitions as in trec_eval and Järvelin and Kekäläinen 2002 (gain = grade, discount log2(1 + rank)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

Grades = Mapping[str, float]


def gains(ranked: Sequence[str], grades: Grades, k: int) -> list[float]:
    """The grade of each of the first k items; 0 for irrelevant and repeated ones."""
    # reversed, so that the earliest place of a repeated item is the one that stays
    first = {item: i for i, item in reversed(list(enumerate(ranked)))}
    return [grades.get(item, 0.0) if first[item] == i else 0.0 for i, item in enumerate(ranked[:k])]


def ndcg(ranked: Sequence[str], grades: Grades, k: int) -> float:
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    return _dcg(gains(ranked, grades, k)) / ideal


def recall(ranked: Sequence[str], grades: Grades, k: int) -> float:
    return _hits(ranked, grades, k) / len(grades)


def precision(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """Hits among the first k, divided by k even if fewer are ranked."""
    return _hits(ranked, grades, k) / k


def mrr(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """1 / the rank of the first hit."""
    return next((1 / rank for rank, gain in enumerate(gains(ranked, grades, k), 1) if gain), 0.0)


def average_precision(ranked: Sequence[str], grades: Grades, k: int) -> float:
    """The mean over all relevant items of the precision at their ranks (0 for items not ranked); its mean over problems is MAP."""
    hits, total = 0, 0.0
    for rank, gain in enumerate(gains(ranked, grades, k), 1):
        hits += gain > 0
        total += hits / rank if gain else 0.0
    return total / len(grades)


MEASURES: dict[str, Callable[[Sequence[str], Grades, int], float]] = {
    "ndcg": ndcg,
    "recall": recall,
    "precision": precision,
    "mrr": mrr,
    "map": average_precision,
}


def _hits(ranked: Sequence[str], grades: Grades, k: int) -> int:
    return sum(gain > 0 for gain in gains(ranked, grades, k))


def _dcg(gains_at_k: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains_at_k, 1))
