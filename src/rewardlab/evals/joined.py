"""Measures of the policy, or another model, together with models whose logits are added to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.core.domain import PositiveInt


@measure(inner="of")
def together(
    problems: Sequence[Problem], run: Run, *, of: Measure, by: tuple[str, ...], weight: float = 1.0, on: str = "policy",
    weights: tuple[float, ...] = (), candidates: PositiveInt = 20,
) -> dict[str, float]:  # fmt: skip
    """What `of` measures of the model `on`, where the models `by` decide along, as in the rollout `joined`."""
    model = run.model(on)
    with model.joined(run.weighted(by, weight, weights), candidates):
        return of(problems, replace(run, policy=model))
