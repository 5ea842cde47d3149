"""A measure for each domain of the held-out problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.errors import RewardlabError


@measure
def by_domain(problems: Sequence[Problem], run: Run, *, of: Measure, column: str = "domain") -> dict[str, float]:
    """The numbers of the measure `of` for the problems of each domain alone, as NUMBER.DOMAIN, and as NUMBER their mean, in which
    every domain counts once however many problems it has.

    column: which of the data says the domain. Problems without it are the domain "other".
    """
    domains: dict[str, list[Problem]] = {}
    for problem in problems:
        domains.setdefault(_name(problem.meta.get(column)), []).append(problem)
    if not domains:
        raise RewardlabError("by_domain: there are no held-out problems")
    numbers = {name: of(rows, run) for name, rows in domains.items()}
    shared = set.intersection(*(set(row) for row in numbers.values()))
    # the interval of a mean is not the mean of intervals
    means = {key: float(np.mean([row[key] for row in numbers.values()])) for key in sorted(shared) if not key.startswith("ci95")}
    each = {f"{key}.{name}": value for name, row in numbers.items() for key, value in row.items() if not key.startswith("ci95")}
    return {**means, "n": float(len(problems)), "domains": float(len(domains)), **each}


def _name(value: Any) -> str:
    return str(value) if value not in (None, "") else "other"
