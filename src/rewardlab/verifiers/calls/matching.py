"""Partial credit for calls: overlap with the gold calls in tools, parameters and values, as in ToolRL (Qian et al. 2025,
arXiv:2504.13958).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rewardlab.text import strict_json

from .calls import Call

Grain = Literal["fine", "call", "exact"]


def agreement(gold: Sequence[Call], said: Sequence[Call], grain: Grain = "fine") -> float:
    """R / S from 0 to 1.

    fine    R = J(names) + sum over gold calls of J(parameter names) + number of right values,   S = 1 + sum (1 + parameters)
    call    R = J(names) + number of gold calls that are made exactly,                           S = 1 + number of gold calls
    exact   1 if the calls are the gold ones in their order, else 0

    J: Jaccard similarity of multisets. Each gold call, in order, is compared with the best of the calls to its tool that are left.
    The same calls in the same order are 1 at every grain.
    """
    if len(gold) == len(said) and all(map(_equal, gold, said)):
        return 1.0
    if grain == "exact":
        return 0.0
    score, most, left = jaccard([c.name for c in gold], [c.name for c in said]), 1.0, list(said)
    for call in gold:
        most += 1 + (len(call.arguments) if grain == "fine" else 0)
        scores = [(_alike(call, other, grain), -i) for i, other in enumerate(left) if other.name == call.name]
        best, at = max(scores, default=(0.0, 0))
        # a call that shares nothing with the gold one stays free for the next
        if best > 0:
            score += best
            del left[-at]
    return score / most


def jaccard(a: Sequence[str], b: Sequence[str]) -> float:
    """Of multisets; 1 for two empty ones."""
    shared = (Counter(a) & Counter(b)).total()
    return shared / (len(a) + len(b) - shared) if a or b else 1.0


def _alike(gold: Call, said: Call, grain: Grain) -> float:
    if grain == "call":
        return float(_equal(gold, said))
    both = gold.arguments.keys() & said.arguments.keys()
    right = sum(strict_json.equal(gold.arguments[name], said.arguments[name]) for name in both)
    return jaccard(list(gold.arguments), list(said.arguments)) + right


def _equal(a: Call, b: Call) -> bool:
    return a.name == b.name and strict_json.equal(dict(a.arguments), dict(b.arguments))
