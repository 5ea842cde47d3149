"""Measures of the policy, or another model, together with models whose logits are added to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewardlab.core import Measure, Problem, Run, measure


@measure(inner="of")
def together(
    problems: Sequence[Problem], run: Run, *, of: Measure, by: tuple[str, ...], weight: float = 1.0, on: str = "policy"
) -> dict[str, float]:
    """What `of` measures of the model `on`, where the logits of the models `by`, each times `weight`, are added to its own."""
    model = run.model(on)
    with model.joined([(weight, run.model(name)) for name in by]):
        return of(problems, replace(run, policy=model))
