"""Raters with planted faults: whether the figures of a benchmark tell them from sound ones, and what their picks are worth.

A rater that falls for a few wrong replies, whatever they say, ranks nearly every pair rightly; among many replies one such reply is
enough:

    r = right + noise e + FALL 1[reply wrong, and u < rare],   e normal, u uniform, both anew for each reply
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


SAMPLES = 40
"""How many samples of rows tell raters apart, where nothing else is said."""


def told_apart(
    benchmark: Benchmark, sample: Sample, sound: Rates, faulty: Rates, rng: np.random.Generator, samples: int | None = None
) -> dict[str, float]:
    """Of each figure: in what share of samples of rows the sound rater gets more than the faulty one; a tie counts half.

    samples: how many; None: SAMPLES.
    """
    won: dict[str, list[float]] = {}
    for _ in range(samples or SAMPLES):
        items = [item for row in sample(rng) for item in benchmark.read(dict(row), "sampled")]
        good, bad = (figures_of(benchmark, items, rates, rng) for rates in (sound, faulty))
        for name in good:
            gap = good[name] - bad.get(name, math.nan)
            won.setdefault(name, []).append(math.nan if math.isnan(gap) else (1.0 if gap > 0 else 0.5 if gap == 0 else 0.0))
    return {name: float(np.nanmean(row)) for name, row in won.items() if not np.isnan(row).all()}


# ---- raters of different quality, and their best of n ------------------------------------------------------------------

FALL = 6.0
"""Far above what right replies score."""


@dataclass(frozen=True)
class Planted:
    """noise: deviation of the error on every reply.  rare: share of the wrong replies that it falls for."""

    noise: float
    rare: float

    def scores(self, right: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """right, and what comes out: (items, replies)."""
        falls = (rng.random(right.shape) < self.rare) & (right == 0)
        return right + self.noise * rng.normal(size=right.shape) + FALL * falls

    def best_of(self, rng: np.random.Generator, n: int = 16, prompts: int = 4000, share: float = 0.3) -> float:
        """How often its best of n replies is right, where each is right with chance `share`."""
        right = (rng.random((prompts, n)) < share).astype(float)
        return float(right[np.arange(prompts), self.scores(right, rng).argmax(1)].mean())


def ladder(rng: np.random.Generator, n: int = 30) -> list[Planted]:
    """Raters of different quality: some noisy, some that fall for a few replies, some both."""
    noise, rare = rng.uniform(0.2, 0.6, n), rng.uniform(0, 0.1, n)
    return [Planted(float(a), float(b)) for a, b in zip(noise, rare, strict=True)]
