"""Measures of the policy after the latents that a learner writes before its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardlab.core import Measure, Problem, Run, measure


@measure(inner="of")
def with_prefix(problems: Sequence[Problem], run: Run, *, of: Measure, by: str, sampled: bool = False) -> dict[str, float]:
    """What `of` measures where the learner `by` writes before each reply the means of its latents.  sampled: samples them."""
    writer = run.model(by)

    def write(rows: Any, rng: Any) -> Any:
        return writer.write(rows, rng if sampled else None)

    with run.policy.prefixed(write):
        return of(problems, run)
