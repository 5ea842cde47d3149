"""Recorded replies beside sampled ones, in the same group."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.rollouts.recorded import recorded


@rollout(inner="of")
def with_demonstrations(problems: list[Problem], run: Run, *, of: Rollout, fields: tuple[str, ...] = ("solution",)) -> list[Group]:
    """The replies in these columns of the data, each tagged with its column's name, and after them those that `of` samples; for
    the problems that `of` has groups for.

    Recorded replies have no log-probs of sampling (`old`): for objectives that learn from any text, not for a policy gradient.
    """
    # it may have dropped problems, or taken further ones
    groups = of(problems, run)
    known = recorded(fields=fields)([group[0].problem for group in groups], run)
    return [[*rows, *group] for rows, group in zip(known, groups, strict=True)]
