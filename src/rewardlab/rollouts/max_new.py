"""Another length of reply than the run's."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, rollout


@rollout
def with_max_new(problems: list[Problem], run: Run, *, rollout: Rollout, max_new: int) -> list[Group]:
    """A rollout whose replies have at most `max_new` tokens: what a second model writes may be longer than what the first does."""
    return rollout(problems, replace(run, max_new=max_new))
