"""Mixtures of several sources by weight."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardlab.errors import RewardlabError


@dataclass(frozen=True)
class Source:
    """Rows with a name and a weight."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    weight: float = 1.0


def amounts(sizes: Sequence[int], weights: Sequence[float], rows: int | None = None, repeat: float = 1.0) -> list[int]:
    """How many rows each source gives to a mixture of so many rows, by weight.

    repeat: how often a source may be gone through at most; one that cannot give its part so gives what it can, and no other fills
    in. rows: None is the largest mixture in which every source can give its part.
    """
    if not sizes or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise RewardlabError("a mixture needs sources, each with a weight above 0, and none with an infinite one")
    if not (math.isfinite(repeat) and repeat > 0):
        raise RewardlabError(f"repeat, how often a file may be gone through, must be a number above 0, not {repeat}")
    # the largest is 1, so that their sum cannot become infinite
    weights = [weight / max(weights) for weight in weights]
    most = [int(repeat * size) for size in sizes]
    shares = [weight / sum(weights) for weight in weights]
    if rows is None:
        rows = int(min(limit / share for limit, share in zip(most, shares, strict=True) if share) + 1e-9)
    exact = [rows * share for share in shares]
    parts = [int(x + 1e-9) for x in exact]
    # what rounding down leaves goes to the largest remainders
    by_remainder = sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])
    for i in by_remainder[: rows - sum(parts)]:
        parts[i] += 1
    return [min(part, limit) for part, limit in zip(parts, most, strict=True)]


def mixture(
    sources: Sequence[Source], rows: int | None = None, repeat: float = 1.0, seed: int = 0, column: str = "source"
) -> list[dict]:
    """Rows of several sources by weight, shuffled; each gets its source's name in `column`, and all have the columns of all.

    A source is gone through in an order of its own, anew for each repetition, so that no row comes twice before every other came
    once. Each source's rows depend on the seed and its name alone. rows, repeat: as in `amounts`.
    """
    parts = amounts([len(source.rows) for source in sources], [source.weight for source in sources], rows, repeat)
    taken = [{**row, column: source.name} for source, n in zip(sources, parts, strict=True) for row in _sampled(source, n, seed)]
    random.Random(f"mixture {seed}").shuffle(taken)
    names = dict.fromkeys(name for row in taken for name in row)
    return [{name: row.get(name) for name in names} for row in taken]


def _sampled(source: Source, n: int, seed: int) -> list[Mapping[str, Any]]:
    sampled: list[Mapping[str, Any]] = []
    for epoch in range(-(-n // max(1, len(source.rows)))):
        order = list(source.rows)
        random.Random(f"mixture {seed} {source.name} {epoch}").shuffle(order)
        sampled += order
    return sampled[:n]
