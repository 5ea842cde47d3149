"""Verifiers of lists, as sets and as rankings.

Items are read from the stated answer: a JSON list, bullets, lines, or parts between semicolons or commas. Two items are equal if
their spelling is equal up to case and spaces, or if they are the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.replies import data, listed, stated
from rewardlab.text.words import f1
from rewardlab.verifiers.contract import Verdict, no_verdict, shorten, verifier, wrong

from . import measures as ranks
from .items import item_key, items, keys

MOST = 10_000
"""Most items of a reply; a longer list is wrong."""


@verifier
def same_set(
    response: str, answer: Any, *, measure: Literal["f1", "precision", "recall", "jaccard"] = "f1", at: Share = 1.0
) -> Verdict:
    """How well the items of the reply match the gold list; order and repetitions do not count.

    measure: "f1", "jaccard", "precision" or "recall" is the value; all four are parts. (Recall alone rewards listing everything.)
    at: the least value of a right reply.
    """
    gold = set(_listed(answer))
    if not gold:
        return no_verdict(f"the gold answer {shorten(answer)} lists nothing")
    listed_items, why = _said(response)
    distinct = set(listed_items)
    shared = len(distinct & gold)
    parts = {
        "f1": f1(shared, len(distinct), len(gold)),
        "jaccard": shared / len(distinct | gold),
        "precision": shared / max(1, len(distinct)),
        "recall": shared / len(gold),
    }
    if why:
        return wrong(why, value=0.0, parts=dict.fromkeys(parts, 0.0))
    missing, extra = sorted(gold - distinct), sorted(distinct - gold)
    why = "right" if distinct == gold else f"misses {listed(missing)[:80] or 'none'}; has too many: {listed(extra)[:80] or 'none'}"
    return Verdict(parts[measure] >= at, listed(listed_items)[:500], why, parts[measure], parts)


@verifier
def ranking(
    response: str,
    answer: Any,
    *,
    measure: Literal["ndcg", "recall", "precision", "mrr", "map"] = "ndcg",
    k: PositiveInt = 10,
    at: Share = 1.0,
) -> Verdict:
    """How well the reply ranks the relevant items. answer: {item: grade}, or a list of equally relevant items.

    measure: "ndcg", "recall", "precision", "mrr" or "map", of the first k. The value is its ratio to that of the best ranking
    (precision and recall at k cannot reach 1 if more or fewer than k items are relevant); the parts are the plain
    measures.  at: the least value of a right reply.
    """
    try:
        grades = _grades(answer)
    except ValueError as problem:
        return no_verdict(f"the gold answer cannot be read: {problem}")
    if not grades:
        return no_verdict(f"the gold answer {shorten(answer)} has no relevant items")
    ranked, why = _said(response)
    parts = {name: measure_of(ranked, grades, k) for name, measure_of in ranks.MEASURES.items()}
    if why:
        return wrong(why, value=0.0, parts=dict.fromkeys(parts, 0.0))
    best = ranks.MEASURES[measure](sorted(grades, key=lambda item: -grades[item]), grades, k)
    # rounding may put the ratio just above 1
    value = min(1.0, parts[measure] / best)
    return Verdict(value >= at, listed(ranked)[:500], f"{measure}@{k} is {parts[measure]:.3f} of at most {best:.3f}", value, parts)


def _said(response: str) -> tuple[list[str], str]:
    """The items of a reply and ""; or no items and the reason."""
    listed_items = items(stated(response))
    if not listed_items:
        return [], "no items found"
    return ([], f"lists over {MOST} items") if len(listed_items) > MOST else (listed_items, "")


def _grades(answer: Any) -> dict[str, float]:
    answer = data(answer)
    if isinstance(answer, Mapping):
        if bad := [item for item, grade in answer.items() if not isinstance(grade, int | float)]:
            raise ValueError(f"the grade of {shorten(bad[0])} is no number but {shorten(answer[bad[0]])}")
        return {item_key(item): float(grade) for item, grade in answer.items() if float(grade) > 0}
    return dict.fromkeys(_listed(answer), 1.0)


def _listed(answer: Any) -> list[str]:
    """The items of a gold answer, a text or a list; none of anything else."""
    if isinstance(answer, str):
        return items(answer)
    return keys(answer) if isinstance(answer, Iterable) else []
