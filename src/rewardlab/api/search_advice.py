"""Which search to use at which budget, and where the measurements do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.util.intervals import holm, interval, p_value

SLACK = 1.05
"""What a method may spend of a budget that it was fitted to on a few problems."""


@dataclass(frozen=True)
class Measured:
    """A method under a setting: tokens per problem, and for each problem 1 if its answer was right."""

    method: str
    setting: str
    tokens: float
    right: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.right))


def advice(measured: Sequence[Measured], budgets: Sequence[int]) -> list[dict[str, Any]]:
    """For each budget the method with the highest accuracy that spends no more, and how surely it beats the others.

    A method counts with its best setting within the budget, that of a smaller budget too. Differences are paired over problems;
    they are decided if p, adjusted for their number (Holm), is at most 0.05. "tied" are the methods that are not, with their
    tokens: the words name the cheapest of them. "use" is None where no method stays within the budget, or none is ever right.
    """
    return [_advice(budget, [m for m in measured if m.tokens <= SLACK * budget]) for budget in budgets]


def _advice(budget: int, within: Sequence[Measured]) -> dict[str, Any]:
    # of equal accuracies the one that costs less
    ordered = sorted(within, key=lambda m: (-m.accuracy, m.tokens))
    best_of_each: dict[str, Measured] = {}
    for m in ordered:
        best_of_each.setdefault(m.method, m)
    if not best_of_each:
        return {"budget": budget, "use": None, "words": "no method stays within it"}
    best, *others = best_of_each.values()
    if not best.accuracy:
        words = f"no method is right on any of the {len(best.right):,} problems: none can be recommended"
        return {"budget": budget, "use": None, "accuracy": 0.0, "words": words}
    gains = [np.subtract(best.right, m.right) for m in others]
    adjusted = holm([p_value(gain) for gain in gains])
    compared = [_compared(m, gain, p) for m, gain, p in zip(others, gains, adjusted, strict=True)]
    tied = [m for m, p in zip(others, adjusted, strict=True) if p > 0.05]
    return {
        "budget": budget, "use": best.method, "setting": best.setting, "accuracy": best.accuracy, "tokens": best.tokens,
        "against": compared, "tied": [m.method for m in tied], "words": _words(best, others, tied),
    }  # fmt: skip


def _compared(other: Measured, gain: np.ndarray, p: float) -> dict[str, Any]:
    mean, low, high = (float(x) for x in interval(gain))
    # one problem has no interval
    ci95 = [low, high] if np.isfinite(low) else None
    return {"method": other.method, "tokens": other.tokens, "gain": mean, "ci95": ci95, "p_adjusted": p}


def _words(best: Measured, others: Sequence[Measured], tied: Sequence[Measured]) -> str:
    under = f" ({best.setting})" if best.setting else ""
    said = f"{best.method}{under}: {best.accuracy:.1%} right for {best.tokens:,.0f} tokens a problem"
    if not others:
        return f"{said}; nothing to compare it with"
    if not tied:
        return f"{said}, and surely more than {_and([m.method for m in others])}"
    cheapest = min((best, *tied), key=lambda m: m.tokens)
    on = f"on these {len(best.right):,} problems it cannot be told apart from {_and([m.method for m in tied])}"
    # of those that cost as much as it, or more, the best is the cheapest
    if cheapest is best:
        return f"{said}; {on}, which cost{'s' * (len(tied) == 1)} no less"
    which = "which is cheaper" if len(tied) == 1 else f"of which {cheapest.method} is the cheapest"
    return f"{said}; {on}, {which}: {cheapest.tokens:,.0f} tokens"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
