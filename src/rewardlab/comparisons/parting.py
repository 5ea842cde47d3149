"""Where what training pays goes on rising while replies get worse: from then on a reward is not worth what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

AROUND = 3
"""Stretches of a run that a point of a curve is the mean of, since one alone is a few batches."""


def parting(curves: Mapping[str, Sequence[float]], updates: float, drop: float) -> float | None:
    """The update after which the share of right replies fell while the reward did not; None where they did not part.

    curves: of `truth` and `reward`, over equal stretches of a run of so many updates.  drop: by how much the truth must fall from
    its highest point to the end to be called falling. They are means over seeds and of training's own problems.
    """
    truth, reward = (smooth(curves.get(name, ())) for name in ("truth", "reward"))
    if len(truth) < 2 or len(truth) != len(reward):
        return None
    peak = int(truth.argmax())
    if truth[peak] - truth[-1] <= drop or reward[-1] < reward[peak]:
        return None
    return (peak + AROUND / 2) / (len(truth) + AROUND - 1) * updates


def smooth(values: Sequence[float]) -> np.ndarray:
    """The means of AROUND neighbouring values; empty for fewer."""
    return np.convolve(values, np.ones(AROUND) / AROUND, "valid") if len(values) >= AROUND else np.zeros(0)
