"""A measure of the policy under a system message that its training told it."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Measure, Problem, Run, measure


@measure
def with_system_prompt(problems: Sequence[Problem], run: Run, *, of: Measure, system: str) -> dict[str, float]:
    """The numbers of the measure `of`, with this system message before each of the problems."""
    return of([problem.told(system) for problem in problems], run)
