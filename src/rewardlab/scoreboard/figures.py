"""Figures of a benchmark with their intervals, and which differences between raters are more than noise.

Intervals are percentiles of a bootstrap over prompts (1,000 resamples; items of one prompt, or of one picture, are kept together),
the same resamples for all raters, so that differences are paired. A share whose resamples are all 0, or all 1, gets Wilson's
interval instead. Two raters differ by the p-value of their difference in the headline figure over its bootstrap deviation (normal),
with Holm's correction over all pairs of raters on all benchmarks. Where the headline rests on fewer than 20 prompts none is clear:
resamples of so few say too little about the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from rewardlab.scoreboard.items import Item

Figures = Mapping[str, float]
RESAMPLES = 1000
Z = 1.959964
LEAST_PROMPTS = 20
"""So many prompts it takes for a difference to be clear: of six, four that one rater alone has right would seem so."""


class Marks:
    """What each item of a benchmark came to, column by column: numbers (n,), and the subset of each item."""

    def __init__(self, columns: Mapping[str, np.ndarray], subset: np.ndarray):
        self.columns, self.subset = columns, subset

    @classmethod
    def of(cls, items: Sequence[Item], rows: Sequence[Mapping[str, float]]) -> Marks:
        """Of one row of numbers an item; a number that a row lacks is NaN."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: np.array([row.get(name, math.nan) for row in rows], float) for name in names}
        return cls(columns, np.array([item.subset for item in items], object))

    def __len__(self) -> int:
        return len(self.subset)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns.get(name, np.full(len(self), math.nan))

    def take(self, index: np.ndarray) -> Marks:
        return Marks({name: column[index] for name, column in self.columns.items()}, self.subset[index])

    def where(self, keep: np.ndarray) -> Marks:
        return self.take(np.flatnonzero(keep))

    def only(self, *subsets: str) -> Marks:
        return self.where(np.isin(self.subset, subsets))

    def subsets(self) -> list[str]:
        """In the order of the file."""
        return list(dict.fromkeys(self.subset.tolist()))

    def mean(self, name: str) -> float:
        """The mean of a column over the items that have it; NaN where none has."""
        column = self[name]
        known = column[~np.isnan(column)]
        return float(known.mean()) if len(known) else math.nan

    def total(self, name: str) -> float:
        return float(np.nansum(self[name]))


def by_subset(marks: Marks, name: str, overall: str = "micro") -> dict[str, float]:
    """The mean of a column for each subset and, first, "overall": over all items ("micro"), or the mean over subsets ("macro")."""
    each = {subset: marks.only(subset).mean(name) for subset in marks.subsets() if subset}
    whole = marks.mean(name) if overall == "micro" or not each else float(np.nanmean(list(each.values())))
    return {"overall": whole, **(each if len(each) > 1 else {})}


def mean_of_known(values: Iterable[float]) -> float:
    """The mean of the numbers that are there, such as figures of subsets; NaN where none is."""
    known = [x for x in values if not math.isnan(x)]
    return sum(known) / len(known) if known else math.nan


def f1(hits: float, said: float, there: float) -> float:
    """The harmonic mean of precision (hits of said) and recall (hits of there); 0 where there are no hits, NaN where nothing is
    said and nothing there."""
    return math.nan if said + there == 0 else 2 * hits / (said + there)


def resamples(items: Sequence[Item], seed: int = 0, n: int = RESAMPLES) -> list[np.ndarray]:
    """Indices of items of each resample; items with the same prompt, or the same pictures, stay together."""
    places: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        places.setdefault(item.cluster, []).append(i)
    clusters = [np.array(x) for x in places.values()]
    from rewardlab.core import seed_of

    rng = np.random.default_rng(seed_of("scoreboard", seed) % 2**32)
    picks = rng.integers(len(clusters), size=(n, len(clusters)))
    if len(clusters) == len(items):
        return list(picks)
    return [np.concatenate([clusters[c] for c in row]) for row in picks]


def bootstrap(figures: Callable[[Marks], Figures], marks: Marks, index: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Each figure on each resample."""
    rows = [figures(marks.take(i)) for i in index]
    return {name: np.array([row.get(name, math.nan) for row in rows]) for name in figures(marks)}


def interval(value: float, replicates: np.ndarray, n: int) -> tuple[float, float] | None:
    """The 95% interval of a figure; None where it cannot be told (a figure without items)."""
    known = replicates[~np.isnan(replicates)]
    if math.isnan(value) or not len(known):
        return None
    if np.ptp(known) == 0 and value in (0.0, 1.0):
        centre, half = (value + Z * Z / (2 * n)) / (1 + Z * Z / n), Z * Z / (2 * n) / (1 + Z * Z / n)
        return max(0.0, centre - half), min(1.0, centre + half)
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def prompts_behind(figures: Callable[[Marks], Figures], raters: Sequence[Marks], clusters: Sequence[str]) -> int:
    """On how many prompts the headline rests: without each of them it is another number for one of the raters. Some prompts are in
    other figures alone, as LLMBar's older pairs are. Counted up to LEAST_PROMPTS, beyond which nobody asks.

    clusters: the prompt of each item.
    """

    def headline(marks: Marks) -> float:
        return next(iter(figures(marks).values()))

    whole = [(marks, value) for marks in raters if not math.isnan(value := headline(marks))]
    prompt, found = np.array(clusters, object), 0
    for one in dict.fromkeys(clusters):
        rest = prompt != one
        found += any(headline(marks.where(rest)) != value for marks, value in whole)
        if found == LEAST_PROMPTS:
            break
    return found


def differences(headlines: Mapping[str, tuple[float, np.ndarray]], prompts: int) -> list[dict[str, Any]]:
    """For each two raters the difference of their headline figures on one benchmark, the better one first.  prompts: on how
    many these rest (`prompts_behind`); p is 1 where they are too few."""
    found = []
    for (a, (x, xs)), (b, (y, ys)) in combinations(headlines.items(), 2):
        if math.isnan(x) or math.isnan(y):
            continue
        sign, names = (1, (a, b)) if x >= y else (-1, (b, a))
        sampled = sign * (xs - ys)
        spread = float(np.nanstd(sampled))
        p = math.erfc(abs(x - y) / spread / math.sqrt(2)) if spread > 0 else 1.0 if x == y else 0.0
        p = p if prompts >= LEAST_PROMPTS else 1.0
        low, high = (float(v) for v in np.nanpercentile(sampled, [2.5, 97.5]))
        apart = {"difference": abs(x - y), "ci95": [low, high], "p": p, "prompts": prompts}
        found.append({"better": names[0], "worse": names[1], **apart})
    return found


def holm(rows: Sequence[dict[str, Any]], level: float = 0.05) -> None:
    """Say of each row whether its difference is clear (`clear`), all rows decided together."""
    ordered = sorted(rows, key=lambda row: row["p"])
    holds = True
    for rank, row in enumerate(ordered):
        holds = holds and row["p"] <= level / (len(ordered) - rank)
        row["clear"] = holds


def means(marks: Marks, name: str) -> dict[str, float]:
    """The mean of a column in each subset that has it, in the order of the file."""
    found: dict[str, list[float]] = {}
    for subset, x in zip(marks.subset.tolist(), marks[name].tolist(), strict=True):
        if x == x:
            found.setdefault(subset, []).append(x)
    return {subset: sum(xs) / len(xs) for subset, xs in found.items()}


def weighted(known: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The weighted mean of the numbers that are there; NaN where none is."""
    there = [(known[name], w) for name, w in weights.items() if not math.isnan(known.get(name, math.nan))]
    return sum(x * w for x, w in there) / sum(w for _, w in there) if there else math.nan
