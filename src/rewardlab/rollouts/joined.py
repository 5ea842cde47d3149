"""Replies that the policy and other models of the run decide on together."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout


@rollout(inner="of")
def joined(problems: list[Problem], run: Run, *, of: Rollout, by: tuple[str, ...], weight: float = 1.0) -> list[Group]:
    """What `of` samples where the logits of the models `by`, each times `weight`, are added to the policy's. The turns are the
    policy's, and their log-probs those of the sum.
    """
    with run.policy.joined([(weight, run.model(name)) for name in by]):
        return of(problems, run)
