"""How often a policy is right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core import Problem, Run, Sampling, Trajectory, measure


def pass_at(k: int, n: int, right: int) -> float:
    """The unbiased chance that k of n drawn replies hold a right one (Chen et al. 2021, arXiv:2107.03374)."""
    if n - right < k:
        return 1.0
    return 1.0 - math.prod((n - right - i) / (n - i) for i in range(k))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95% interval of a mean of numbers in [0, 1]: Wilson's where all are 0 or 1, else normal; within [0, 1]."""
    x = np.asarray(values, float)
    n, mean, z = len(x), float(np.mean(x)), 1.959964
    if n == 0:
        return 0.0, 1.0
    if set(np.unique(x)) <= {0.0, 1.0}:
        centre, spread = mean + z * z / (2 * n), z * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
        return (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    half = z * float(np.std(x, ddof=1)) / math.sqrt(n) if n > 1 else 1.0
    return max(0.0, mean - half), min(1.0, mean + half)


def count_right(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[bool]]:
    """Draw n replies to each problem and judge them with the task's verifier. No verdict counts as not right."""
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [t for t in asked for _ in range(n)]
    done = run.policy.extend(rows, Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    return [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]


@measure
def accuracy(problems: Sequence[Problem], run: Run, *, temperature: float = 1.0) -> dict[str, float]:
    """pass@1 of single draws, with its 95% interval."""
    right = [float(row[0]) for row in count_right(problems, run, 1, temperature)]
    low, high = mean_interval(right)
    return {"pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right))}
