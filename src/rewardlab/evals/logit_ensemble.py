"""Measures of a logit ensemble: the policy, or another model, with the logits of further models added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.settings.domain import PositiveInt


@measure(wraps="inner")
def together(
    problems: Sequence[Problem], run: Run, *, inner: Measure, by: tuple[str, ...], weight: float = 1.0, on: str = "policy",
    weights: tuple[float, ...] = (), candidates: PositiveInt = 20, alone: bool = False,
) -> dict[str, float]:  # fmt: skip
    """The measure `inner` of the model `on` in an ensemble with the models `by`, as in the rollout `logit_ensemble`.

    alone: what it measures of that model by itself as well, as alone.X.
    """
    model = run.model(on)
    with model.joined(run.weighted(by, weight, weights), candidates):
        found = inner(problems, replace(run, policy=model))
    apart = inner(problems, replace(run, policy=model)) if alone else {}
    return {**found, **{f"alone.{name}": value for name, value in apart.items()}}
