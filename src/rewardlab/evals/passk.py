"""Accuracy: pass@1 and pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, Sampling, Score, Trajectory, measure
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import final_answer


def pass_at(k: int, n: int, right: int) -> float:
    """The unbiased estimate from n samples of the chance that one of k is right (Chen et al. 2021, arXiv:2107.03374)."""
    # fewer than k samples are wrong, so any k of them contain a right one
    if n - right < k:
        return 1.0
    # C(n - right, k) / C(n, k) as a product, since the binomials themselves get too large
    return 1.0 - math.prod((n - right - i) / (n - i) for i in range(k))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95% interval of a mean: Wilson's if all numbers are 0 or 1, else normal; clipped to [0, 1] if all numbers are in it."""
    x = np.asarray(values, float)
    n, mean, z = len(x), float(np.mean(x)), 1.959964  # z: the 97.5% quantile of the normal distribution
    if n == 0:
        return 0.0, 1.0
    # the normal interval of a proportion has no width at 0 and 1; Wilson's has
    if set(np.unique(x)) <= {0.0, 1.0}:
        centre, spread = mean + z * z / (2 * n), z * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
        return (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    # one number tells nothing about the spread: half a width of 1 covers [0, 1]
    half = z * float(np.std(x, ddof=1)) / math.sqrt(n) if n > 1 else 1.0
    if x.min() < 0 or x.max() > 1:
        return mean - half, mean + half
    return max(0.0, mean - half), min(1.0, mean + half)


def count_right(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[bool]]:
    """Whether each of n sampled replies to each problem is right, by the task's verifier. No verdict counts as wrong."""
    return [[right for _, right in row] for row in sample_and_judge(problems, run, n, temperature)]


def sample_and_judge(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[tuple[str, bool]]]:
    """n sampled replies to each problem, each with whether it is right by the task's verifier."""
    judged = judged_samples(problems, run, n, temperature)
    return [[(reply, s.value is not None and s.value >= 1.0) for reply, s in row] for row in judged]


def judged_samples(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[list[tuple[str, Score]]]:
    """n sampled replies to each problem, each with what the task's verifier says of it."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    # the n copies of a prompt are adjacent, so slices of n are the groups
    rows = [t for t in prompts for _ in range(n)]
    done = run.policy.extend(rows, Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    scores = run.verify(groups, run)
    return [[(t.reply, s) for t, s in zip(group, row, strict=True)] for group, row in zip(groups, scores, strict=True)]


@measure
def accuracy(problems: Sequence[Problem], run: Run, *, temperature: NonNegativeFloat = 1.0) -> dict[str, float]:
    """pass@1 from one sample per problem, with its 95% interval."""
    return pass_at_1([row[0] for row in count_right(problems, run, 1, temperature)])


def pass_at_1(right: Sequence[bool]) -> dict[str, float]:
    """What `accuracy` says of one reply to each problem, each right or not."""
    low, high = mean_interval([float(x) for x in right])
    return {"pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right))}


@measure
def pass_curve(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 16, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@1 with its 95% interval over problems, pass@2, pass@4 ... pass@n, each from n samples; `distinct` right answers."""
    judged = sample_and_judge(problems, run, n, temperature)
    right = [sum(ok for _, ok in row) for row in judged]
    low, high = mean_interval([count / n for count in right])
    ks = [2**i for i in range(n.bit_length()) if 2**i <= n]
    curve = {f"pass@{k}": float(np.mean([pass_at(k, n, count) for count in right])) for k in ks}
    return curve | {"ci95_low": low, "ci95_high": high, "n": float(len(problems)), "distinct": _distinct(judged)}


@measure
def coverage(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 16, k: PositiveInt = 8, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@k from n samples, with its 95% interval over problems; pass@1; `distinct`: different right answers per problem."""
    judged = sample_and_judge(problems, run, n, temperature)
    right = [sum(ok for _, ok in row) for row in judged]
    solved = [pass_at(k, n, count) for count in right]
    low, high = mean_interval(solved)
    return {
        f"pass@{k}": float(np.mean(solved)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "pass@1": float(np.mean(right)) / n, "distinct": _distinct(judged),
    }  # fmt: skip


def _distinct(judged: Sequence[Sequence[tuple[str, bool]]]) -> float:
    """Different right answers per problem."""
    return float(np.mean([len({final_answer(text) for text, ok in row if ok}) for row in judged]))
