"""Replies with a token limit other than the run's."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt


@rollout(inner="rollout")
def with_max_new(problems: list[Problem], run: Run, *, rollout: Rollout, max_new: PositiveInt) -> list[Group]:
    """The inner rollout with replies of at most `max_new` tokens, for a second model that writes longer replies than the policy."""
    return rollout(problems, replace(run, max_new=max_new))
