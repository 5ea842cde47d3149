"""The verifier of Boolean queries: they are run on a collection of texts, and scored by retrieved documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardlab.settings.domain import Share
from rewardlab.text import boolean
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

NOTHING = {"form": 0.0, "valid": 0.0, "hits": 0.0, "recall": 0.0, "precision": 0.0, "found": 0.0}


@verifier(over="pairs")
def boolean_query(pairs: list[Pair], *, documents: str = "documents", recall: Share = 1.0, precision: Share = 1.0) -> list[Verdict]:
    """Right if the query in <answer>...</answer>, with which the reply ends, finds the relevant documents and no others.

    answer: {"relevant", "documents"}: indices, and the texts that they are of; or the indices, with the texts in the data column
    `documents`.  recall, precision: the least of a right query.  The language of queries is that of `text/boolean.py`.

    parts: form and valid (a query is there; it can be read), found (documents), hits (relevant ones among them), recall, precision.
    """
    return [_judged(pair, documents, recall, precision) for pair in pairs]


def _judged(pair: Pair, column: str, recall: float, precision: float) -> Verdict:
    whole = isinstance(pair.answer, Mapping)
    texts = pair.answer.get("documents") if whole else pair.meta.get(column)
    relevant = _indices(pair.answer.get("relevant") if whole else pair.answer)
    if not isinstance(texts, list | tuple) or not relevant or not all(0 <= i < len(texts) for i in relevant):
        return no_verdict("the answer has no indices of relevant documents among documents that are given")
    texts = [str(text) for text in texts]
    query = stated_query(pair.response)
    if query is None:
        return wrong("the reply does not end with <answer>...</answer>", parts=NOTHING)
    try:
        tree = boolean.parse(query)
    except ValueError as problem:
        return wrong(f"the query cannot be read: {problem}", query, parts={**NOTHING, "form": 1.0})
    found = boolean.matching(tree, texts)
    hits = len(found & relevant)
    shares = hits / len(relevant), hits / len(found) if found else 0.0
    parts = {
        "form": 1.0,
        "valid": 1.0,
        "hits": float(hits),
        "recall": shares[0],
        "precision": shares[1],
        "found": float(len(found)),
    }
    why = f"finds {hits} of {len(relevant)} relevant documents, and {len(found) - hits} others"
    enough = found and parts["recall"] >= recall and parts["precision"] >= precision
    return right(query, why, parts=parts) if enough else wrong(why, query, parts=parts)


def stated_query(response: str) -> str | None:
    """What stands in <answer>...</answer> at the end of a reply, after a whole <think>...</think> if it has one; else None."""
    text = response.rstrip()
    before, tag, query = text.removesuffix("</answer>").rpartition("<answer>")
    if not text.endswith("</answer>") or not tag or not query.strip():
        return None
    if "<think>" in text:
        thought, closed, _ = before.partition("<think>")[2].partition("</think>")
        return query.strip() if closed and thought.strip() else None
    return query.strip()


def _indices(answer: Any) -> set[int]:
    whole = isinstance(answer, list | tuple) and all(isinstance(i, int) and not isinstance(i, bool) for i in answer)
    return set(answer) if whole else set()
