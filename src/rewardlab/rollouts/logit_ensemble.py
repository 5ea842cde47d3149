"""Replies sampled from the summed logits of the policy and other models of the run."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.settings.domain import PositiveInt


@rollout(wraps="inner")
def logit_ensemble(
    problems: list[Problem], run: Run, *, inner: Rollout, by: tuple[str, ...], weight: float = 1.0, weights: tuple[float, ...] = (),
    candidates: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """The samples of `inner` with the logits of the models `by`, each times `weight`, added to the policy's. The turns are the
    policy's; their log-probs are those of the sum.

    A model with a value head adds its values of the `candidates` most likely tokens, minus their mean (`TextPolicy.joined`).
    weights: one for each model, times `weight`; without them 1 for each.
    """
    with run.policy.joined(run.weighted(by, weight, weights), candidates):
        return inner(problems, run)
