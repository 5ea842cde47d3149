"""A measure for each domain of the held-out problems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.data.values import domain_of
from rewardlab.errors import RewardlabError

INTERVAL = ("ci95_low", "ci95_high")


@measure
def by_domain(problems: Sequence[Problem], run: Run, *, inner: Measure, column: str = "domain") -> dict[str, float]:
    """The numbers of the measure `inner` per domain, as NUMBER.DOMAIN, and as NUMBER their mean, which counts every domain once,
    however many problems it has.

    column: which of the data says the domain. Problems without it are the domain "other".
    """
    domains: dict[str, list[Problem]] = {}
    for problem in problems:
        domains.setdefault(domain_of(problem.meta, column), []).append(problem)
    if not domains:
        raise RewardlabError("by_domain: there are no held-out problems")
    numbers = {name: inner(rows, run) for name, rows in domains.items()}
    first, *others = numbers.values()
    # in the order of `inner`, whose first number is what it is about
    shared = [key for key in first if key not in (*INTERVAL, "n") and all(key in row for row in others)]
    means = {key: float(np.mean([row[key] for row in numbers.values()])) for key in shared}
    each = {f"{key}.{name}": value for name, row in numbers.items() for key, value in row.items() if key not in INTERVAL}
    return {**means, **_interval(list(numbers.values()), next(iter(means.values()), 0.0)), "n": float(len(problems)), **each}


def _interval(rows: Sequence[Mapping[str, float]], mean: float) -> dict[str, float]:
    """The interval of the mean over domains, whose problems are different ones; empty where a domain has none."""
    if not all(end in row for row in rows for end in INTERVAL):
        return {}
    half = math.sqrt(sum(((row["ci95_high"] - row["ci95_low"]) / 2) ** 2 for row in rows)) / len(rows)
    return {"ci95_low": mean - half, "ci95_high": mean + half}
