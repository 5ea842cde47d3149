"""Replies after a prefix of latents that a learner of the run writes."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout


@rollout(inner="of")
def prefixed(problems: list[Problem], run: Run, *, of: Rollout, by: str) -> list[Group]:
    """What `of` samples where the learner `by` (`policies/assistant.py`) writes latents before each reply, sampled for each row.

    They are a turn of the learner's own, with log-probs; the policy reads them in place of token embeddings.
    """
    writer = run.model(by)
    writer.step = run.step
    with run.policy.prefixed(writer.write):
        return of(problems, run)
