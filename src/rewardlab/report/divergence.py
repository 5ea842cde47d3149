"""Where a reward, or a term of it, rises while the truth falls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rewardlab.runs.metrics import finite

Row = dict[str, Any]


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
    rows_with_both = [r for r in rows if math.isfinite(finite(r.get(name)) + finite(r.get("truth")))]
    table = np.array([[r["step"], r[name], r["truth"]] for r in rows_with_both], float).reshape(-1, 3)
    # averages of neighbours: fewer points, less noise, and windows that stay cheap
    if len(table) > 400:
        table = np.array([part.mean(0) for part in np.array_split(table, 400)])
    step, reward, truth = table.T
    sign = -1 if subtracted else 1
    for width in sorted({max(10, len(step) // 5), max(10, len(step) // 2), len(step)}):
        if width < 10 or width > len(step):
            continue
        starts = np.flatnonzero((sign * trend(reward, width) > sure) & (trend(truth, width) < -sure))
        if len(starts):
            who = "the reward" if name == "reward" else f"the reward term {name.removeprefix('reward/')}"
            what = f"{who}, which is subtracted, falls" if subtracted else f"{who} rises"
            return [_stretch(step, reward, truth, a, b, what) for a, b in _spans(starts, width)]
    return []


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


def _stretch(step: np.ndarray, reward: np.ndarray, truth: np.ndarray, a: int, b: int, what: str) -> Row:
    # the mean of the first and last fifth, since single steps are noisy
    edge = max(1, (b - a + 1) // 5)
    (r0, r1), (t0, t1) = ((y[a : a + edge].mean(), y[b + 1 - edge : b + 1].mean()) for y in (reward, truth))
    first, last_step = int(step[a]), int(step[b])
    text = f"Steps {first}–{last_step}: {what} ({r0:.3g} → {r1:.3g}) while the truth falls ({t0:.3g} → {t1:.3g})."
    return {"first": first, "last": last_step, "reward": (r0, r1), "truth": (t0, t1), "text": text}
