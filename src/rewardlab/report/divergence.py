"""Divergence of a reward, or a term of it, from the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rewardlab.runs.metrics import finite

Row = dict[str, Any]
SHORTEST = 10
"""Steps below which no divergence is looked for."""


def names(rows: list[Row]) -> list[str]:
    """The metrics that have a finite value somewhere, in the order in which they first occur."""
    found = dict.fromkeys(k for row in rows for k in row)
    return [k for k in found if any(k in row and math.isfinite(finite(row[k])) for row in rows)]


def divergence(rows: list[Row], sure: float = 4.0, name: str = "reward", subtracted: bool = False) -> list[Row]:
    """Ranges of steps in which the proxy reward, or another number by its `name`, rises while the held-out truth falls.

    Both slopes must stand `sure` standard errors from zero within a window. Narrow windows are tried first, since they
    locate the divergence best; wide ones find what noise hides from narrow ones.  subtracted: the number lowers the reward, and
    its falling is looked for.  Each stretch: first and last step, reward and truth (from, to), text.
    """
    step, reward, truth = _both(rows, name)
    sign = -1 if subtracted else 1
    for width in sorted({max(SHORTEST, len(step) // 5), max(SHORTEST, len(step) // 2), len(step)}):
        if width < SHORTEST or width > len(step):
            continue
        starts = np.flatnonzero((sign * trend(reward, width) > sure) & (trend(truth, width) < -sure))
        if len(starts):
            who = "the reward" if name == "reward" else f"the reward term {name.removeprefix('reward/')}"
            what = f"{who}, which is subtracted, falls" if subtracted else f"{who} rises"
            return [_stretch(step, reward, truth, a, b, what, "falls") for a, b in _spans(starts, width)]
    return []


def parting(rows: list[Row], sure: float = 4.0) -> Row | None:
    """Where the reward parts from the truth: the first step from which the reward rises to the end of the run and the truth never
    gets higher than it is there; a stretch as in `divergence`. None where they keep together, or too little is known.

    From there on the reward's slope stands `sure` standard errors from zero, and that of the truth, with two of its own, stays
    below half of the reward's. A truth of 1, which cannot rise, is not left behind. Where the reward is not on the verdict's
    scale, slopes count in ranges of the run's curves.
    """
    step, reward, truth = _both(rows, "reward")
    least, smooth = max(SHORTEST, len(step) // 10), _smoothed(truth, max(3, len(step) // 10))
    if len(step) < least:
        return None
    # the noise of a curve is that of its differences, over the square root of 2 and of how many are averaged
    noise = float(np.diff(truth).std()) / math.sqrt(2 * max(3, len(step) // 10))
    ranges = [max(float(np.ptp(_smoothed(y, least))), 1e-9) for y in (truth, reward)]
    scale = 1.0 if on_one_axis(reward.tolist()) else ranges[0] / ranges[1]
    for at in range(len(step) - least + 1):
        (rise, error), (gain, doubt) = (_slope(y[at:]) for y in (reward, truth))
        apart = rise > sure * error and gain + 2 * doubt < scale * rise / 2
        if apart and smooth[at:].max() <= smooth[at] + 2 * noise and smooth[at] + 2 * noise < 1:
            # of few steps, or a truth that falls at once and then lies still, the slope is unsure where the levels are not
            falls = gain < -sure * doubt or smooth[at] - smooth[-1] > sure * noise
            return _stretch(step, reward, truth, at, len(step) - 1, "the reward rises", "falls" if falls else "does not")
    return None


def apart(rows: list[Row]) -> list[Row]:
    """The stretches in which the reward rises while the truth falls; without any, where it rises on and the truth does not."""
    return divergence(rows) or [found for found in [parting(rows)] if found]


def watched(rows: list[Row], expected: bool = True) -> str | None:
    """What became of the truth while the reward was learnt, in one line; None where the reward is the truth, or there is none.

    expected: whether a truth that is not known is told.
    """
    if not any(math.isfinite(finite(row.get("reward"))) for row in rows):
        return None
    step, reward, truth = _both(rows, "reward")
    if not len(step):
        if not expected:
            return None
        return "not known: the task's verifier gave no verdict on the training rollouts, and nothing else says what is right"
    if np.allclose(reward, truth):
        return None
    if found := apart(rows):
        return found[0]["text"]
    together = _stretch(step, reward, truth, 0, len(step) - 1, "", "")
    (r0, r1), (t0, t1) = together["reward"], together["truth"]
    return f"{t0:.3g} → {t1:.3g}, with a reward of {r0:.3g} → {r1:.3g}"


def on_one_axis(rewards: list[float]) -> bool:
    """Whether a reward is on the scale of a verdict, which is 0 or 1."""
    return all(-1 <= value <= 2 for value in rewards)


def gamed(rows: list[Row]) -> dict[str, list[Row]]:
    """The terms that rise while the truth falls, each with the stretches of `divergence`; one that is subtracted, where it falls.

    The terms that a run compares with the truth, as it does where several add to the reward.
    """
    found: dict[str, list[Row]] = {}
    logged = names(rows)
    for label in (key.removeprefix("untrue/") for key in logged if key.startswith("untrue/")):
        # a name may begin with a minus of its own
        subtracted = label.startswith("-") and f"reward/{label}" not in logged
        term = label[1:] if subtracted else label
        found[term] = divergence(rows, name=f"reward/{term}", subtracted=subtracted)
    return {term: stretches for term, stretches in found.items() if stretches}


def _both(rows: list[Row], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps at which this number and the truth were logged, and the two."""
    rows_with_both = [r for r in rows if math.isfinite(finite(r.get(name)) + finite(r.get("truth")))]
    table = np.array([[r["step"], r[name], r["truth"]] for r in rows_with_both], float).reshape(-1, 3)
    # averages of neighbours: fewer points, less noise, and windows that stay cheap
    if len(table) > 400:
        table = np.array([part.mean(0) for part in np.array_split(table, 400)])
    step, number, truth = table.T
    return step, number, truth


def _smoothed(y: np.ndarray, width: int) -> np.ndarray:
    """The mean of the `width` values around each, of fewer at the ends."""
    return np.array([y[max(0, i - width // 2) : i + width // 2 + 1].mean() for i in range(len(y))])


def _slope(y: np.ndarray) -> tuple[float, float]:
    """The least-squares slope of a curve, and its standard error."""
    x = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(x @ y / (x @ x))
    residual = y - y.mean() - slope * x
    # a noiseless line has no error
    return slope, max(math.sqrt(float(residual @ residual) / (len(y) - 2) / float(x @ x)), 1e-9)


def trend(y: np.ndarray, width: int) -> np.ndarray:
    """The t statistic of the least-squares slope within each window."""
    windows = sliding_window_view(y, width)
    # centred, so that slope and mean are independent
    x = np.arange(width) - (width - 1) / 2
    slope = windows @ x / (x @ x)
    residual = windows - windows.mean(1, keepdims=True) - slope[:, None] * x
    # standard error of a least-squares slope, with width - 2 degrees of freedom
    error = np.sqrt((residual**2).sum(1) / (width - 2) / (x @ x))
    # a noiseless line has no error
    return slope / np.maximum(error, 1e-9)


def _spans(starts: np.ndarray, width: int) -> Iterator[tuple[int, int]]:
    """(first, last) index of windows of this width, merging those that touch."""
    for run in np.split(starts, np.flatnonzero(np.diff(starts) > width) + 1):
        yield int(run[0]), int(run[-1]) + width - 1


def _stretch(step: np.ndarray, reward: np.ndarray, truth: np.ndarray, a: int, b: int, what: str, then: str) -> Row:
    # the mean of the first and last fifth, since single steps are noisy
    edge = max(1, (b - a + 1) // 5)
    (r0, r1), (t0, t1) = ((y[a : a + edge].mean(), y[b + 1 - edge : b + 1].mean()) for y in (reward, truth))
    first, last_step = int(step[a]), int(step[b])
    text = f"Steps {first}–{last_step}: {what} ({r0:.3g} → {r1:.3g}) while the truth {then} ({t0:.3g} → {t1:.3g})."
    return {"first": first, "last": last_step, "reward": (r0, r1), "truth": (t0, t1), "text": text}
