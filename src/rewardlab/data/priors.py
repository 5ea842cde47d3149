"""What was thought of a problem before its replies were seen, against what they earned."""

from __future__ import annotations

from collections.abc import Sequence

PRIOR = "prior"
"""The column that says what a problem's replies are thought to earn on average, from 0 to 1."""
FLOOR = 0.05
"""Standard errors are those of a prior at least this far from 0 and from 1: a sure one has none, and could not be tested."""


def squared_deviation(earned: Sequence[float], prior: float) -> float:
    """The square of (mean - prior) in standard errors of the mean, were the prior true of rewards of 0 and 1."""
    p = min(max(prior, FLOOR), 1 - FLOOR)
    return (sum(earned) / len(earned) - prior) ** 2 / (p * (1 - p) / len(earned))


def is_doubted(earned: Sequence[float], prior: float | None, z: float) -> bool:
    """Whether the mean of what replies earned is more than z standard errors away from the prior."""
    return prior is not None and len(earned) > 0 and squared_deviation(earned, prior) > z * z


def shrunk(earned: Sequence[float], prior: float | None, z: float) -> float:
    """w prior + (1 - w) mean, w = min(1, z^2 / squared deviation): the prior alone while it is not doubted, ever less of it after.

    With z = 1 this w is that of the least squared error, s^2 / (s^2 + bias^2), where bias^2 is put at (mean - prior)^2 - s^2, or at
    0 if that is below 0; s is the standard error.
    """
    mean = sum(earned) / len(earned)
    if prior is None:
        return mean
    deviation = squared_deviation(earned, prior)
    w = 1.0 if deviation <= z * z else z * z / deviation
    return w * prior + (1 - w) * mean
