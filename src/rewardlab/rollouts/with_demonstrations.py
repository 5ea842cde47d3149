"""Recorded replies beside sampled ones, in the same group."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.rollouts.recorded import recorded


@rollout(wraps="inner")
def with_demonstrations(
    problems: list[Problem], run: Run, *, inner: Rollout, fields: tuple[str, ...] = ("solution",)
) -> list[Group]:
    """Recorded replies of these columns, tagged with the column's name, followed by the samples of `inner`, for the problems that
    `inner` has groups for.

    Recorded replies have no log-probs of sampling (`old`): for objectives that learn from any text, not for a policy gradient.
    """
    # it may have dropped problems, or taken further ones
    groups = inner(problems, run)
    known = recorded(fields=fields)([group[0].problem for group in groups], run)
    return [[*rows, *group] for rows, group in zip(known, groups, strict=True)]
