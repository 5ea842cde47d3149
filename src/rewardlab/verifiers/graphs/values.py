"""The verifier of all kinds of questions about graphs: numbers, yes or no, sets, and answers that are not unique."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.numbers import number
from rewardlab.text.replies import data, listed, stated
from rewardlab.verifiers.contract import Pair, Verdict, differs, no_verdict, right, verifier, wrong
from rewardlab.verifiers.match import final_number
from rewardlab.verifiers.sets.items import items, keys

from .answers import Unreadable, answer, names, read_edges, says_none
from .verifier import graph_solution

YES_NO = {"yes": True, "true": True, "no": False, "false": False}
MOST = 10_000
"""Most items of a reply; a longer list is wrong."""


@verifier(over="pairs", modules=("networkx",))
def graph_answer(pairs: list[Pair], *, partial: bool = True, tolerance: NonNegativeFloat = 1e-3) -> list[Verdict]:
    """Right if the reply answers a question about a graph; each kind of answer is compared as it should be.

    answer, as data or JSON text:

        {"value": 3}, {"value": 0.25}, {"value": true}     exactly; within `tolerance`; yes or no
        {"items": [1, 4]}                                  nodes as a set: worth their Jaccard similarity
        {"pairs": [[1, 4]], "nodes": [1, 2, 3, 4]}         undirected edges as a set: likewise
        {"kind": "shortest_path", "graph": ...}            checked by algorithm, since others may be right: `graph_solution`

    partial: whether a set that is not the gold one is worth its similarity; else nothing. It is wrong in either case.
    """
    golds = [data(pair.answer) for pair in pairs]
    checked = [i for i, gold in enumerate(golds) if isinstance(gold, Mapping) and "kind" in gold]
    by_algorithm = dict(zip(checked, graph_solution().check_all([pairs[i] for i in checked]), strict=True))
    return [
        by_algorithm[i] if i in by_algorithm else _compared(pair.response, gold, partial, tolerance)
        for i, (pair, gold) in enumerate(zip(pairs, golds, strict=True))
    ]


def _compared(response: str, gold: Any, partial: bool, tolerance: float) -> Verdict:
    match gold:
        case {"value": bool(yes)}:
            said = stated(response).strip(" .*_`$\n").casefold()
            return right(said) if YES_NO.get(said) is yes else wrong(differs(said, "yes" if yes else "no"), said)
        case {"value": int() | float() as value} if math.isfinite(value):
            return _number(response, value, tolerance if isinstance(value, float) else 0.0)
        case {"items": list(members)}:
            return _set(response, {(key,) for key in keys(members)}, _nodes, partial)
        case {"pairs": list(edges), "nodes": list(nodes)} if all(isinstance(e, list | tuple) and len(e) == 2 for e in edges):
            known = names(str(node) for node in nodes)
            gold_edges = {tuple(sorted((str(u), str(v)))) for u, v in edges}
            return _set(response, gold_edges, lambda text: [tuple(sorted(e)) for e in read_edges(text, known)], partial)
    return no_verdict(f"the gold answer {json.dumps(gold, default=str)[:80]} is of no kind that is known")


def _number(response: str, gold: float, tolerance: float) -> Verdict:
    found = final_number().check(response, str(gold))
    said = number(found.extracted) if found.extracted else None
    if said is None:
        return wrong(found.why, found.extracted)
    same = abs(float(said) - gold) <= tolerance
    return right(found.extracted) if same else wrong(differs(found.extracted, gold), found.extracted)


def _nodes(text: str) -> list[tuple[str, ...]]:
    return [(key,) for key in items(text)]


def _set(response: str, gold: set[tuple[str, ...]], read: Any, partial: bool) -> Verdict:
    """The similarity of what is listed to a set, which may be empty."""
    try:
        text = answer(response)
        said: Sequence[tuple[str, ...]] = [] if says_none(text) or text == "[]" else read(text)
    except Unreadable as fault:
        return wrong(str(fault), value=0.0)
    if len(said) > MOST:
        return wrong(f"lists over {MOST} items", value=0.0)
    if not said and gold and not says_none(text):
        return wrong("lists nothing", value=0.0)
    distinct = set(said)
    similarity = len(distinct & gold) / len(distinct | gold) if distinct | gold else 1.0
    correct, shown = distinct == gold, listed("-".join(item) for item in said)[:500]
    return Verdict(correct, shown, f"Jaccard similarity {similarity:.3f}", similarity if partial else float(correct))
