"""Raters with planted faults on replies of known worth, and how often their best of n is right: for checks of benchmarks.

    r = right + noise e + FALL 1[reply wrong, and u < rare],   e normal, u uniform, both anew for each reply

A rater that falls for a few wrong replies, whatever they say, ranks nearly every pair rightly; among many replies one such reply is
enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
