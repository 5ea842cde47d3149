"""Planted faults: whether a figure tells a sound rater from one with a known fault, over many samples of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict

Rates = Callable[[Item, np.random.Generator], Verdict]
Sample = Callable[[np.random.Generator], Sequence[Mapping[str, Any]]]


def figures_of(benchmark: Benchmark, items: Sequence[Item], rates: Rates, rng: np.random.Generator) -> dict[str, float]:
    """The figures of one rater on items."""
    return dict(benchmark.figures(Marks.of(items, [benchmark.marks(item, rates(item, rng)) for item in items])))


def told_apart(
    benchmark: Benchmark, sample: Sample, sound: Rates, faulty: Rates, rng: np.random.Generator, samples: int = 40
) -> dict[str, float]:
    """Of each figure: in what share of samples of rows the sound rater gets more than the faulty one; a tie counts half."""
    won: dict[str, list[float]] = {}
    for _ in range(samples):
        items = [item for row in sample(rng) for item in benchmark.read(dict(row), "sampled")]
        good, bad = (figures_of(benchmark, items, rates, rng) for rates in (sound, faulty))
        for name in good:
            gap = good[name] - bad.get(name, math.nan)
            won.setdefault(name, []).append(math.nan if math.isnan(gap) else (1.0 if gap > 0 else 0.5 if gap == 0 else 0.0))
    return {name: float(np.nanmean(row)) for name, row in won.items() if not np.isnan(row).all()}
