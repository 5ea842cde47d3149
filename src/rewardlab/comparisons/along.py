"""Members at equal amounts of what a run spends as it learns, as the KL to the policy that it began from.

A loss that takes the policy farther may look better for that alone, or worse for having gone too far. So runs are measured on the
way, and a member is compared with the baseline once more where both have gone as far: as far as the one of the two that went less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.runs import Done
from rewardlab.comparisons.league import Outcome
from rewardlab.comparisons.standings import by_start, decided

POINTS = 8
"""Measurements of a run after its start."""
Path = np.ndarray
"""(2, points): what was spent, rising, and the outcome there."""


def path_of(done: Done, spends: str, outcome: str) -> Path:
    """The measurements of a run that went farther than all before them.

    A run may turn back, or seem to by the noise of a measurement: what it measured there is left out, so that each amount has one
    outcome, the first.
    """
    points = [(numbers.get(spends, math.nan), numbers.get(outcome, math.nan)) for _, numbers in done.curve]
    known = np.array([point for point in points if all(map(math.isfinite, point))], float).reshape(-1, 2)
    before = np.maximum.accumulate(np.concatenate([[-math.inf], known[:, 0]]))[:-1]
    return known[known[:, 0] > before].T


def mean_path(runs: Sequence[Done], spends: str, outcome: str) -> list[list[float]]:
    """(spent, outcome) at each measurement, as means over the runs that have it."""
    rows = [
        [(n[spends], n[outcome]) for _, n in one.curve if n.get(spends) is not None and n.get(outcome) is not None] for one in runs
    ]
    points = min(map(len, rows), default=0)
    return [[round(float(x), 5) for x in np.mean([row[i] for row in rows], axis=0)] for i in range(points)]


def compared(
    runs: Mapping[str, Sequence[Done]], baseline: str, spends: str, outcome: Outcome, starts: Sequence[int] | None = None
) -> dict[str, dict[str, Any]]:
    """By member: its standing where it and the baseline have spent as much, and the means of that amount and of its outcome there.

    runs: of the members, seed by seed in one order. A member none of whose pairs were measured on the way is left out.
    starts: by seed, the initial policy that it was run from, as in `standings`.
    """
    paths = {name: [path_of(one, spends, outcome.number) for one in own] for name, own in runs.items()}
    met = {
        name: [meeting(a, b) for a, b in zip(own, paths[baseline], strict=True)] for name, own in paths.items() if name != baseline
    }
    met = {name: points for name, points in met.items() if any(math.isfinite(at) for at, *_ in points)}
    differences = {name: by_start([outcome.gain(a - b) for _, a, b in points], starts) for name, points in met.items()}
    found = decided(differences, outcome.margin)
    return {
        name: {
            **{key: float(np.nanmean([point[i] for point in points])) for i, key in enumerate(("spent", "mean", "baseline"))},
            **found[name].to_json(),
        }
        for name, points in met.items()
    }  # fmt: skip


def meeting(own: Path, other: Path) -> tuple[float, float, float]:
    """The amount that both runs came to, and the outcome of each there, between two measurements on a straight line."""
    if not own.shape[1] or not other.shape[1]:
        return math.nan, math.nan, math.nan
    at = min(own[0, -1], other[0, -1])
    return float(at), float(np.interp(at, *own)), float(np.interp(at, *other))
