"""Rollouts of the problems of some domains alone."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.data.values import domain_of
from rewardlab.errors import RewardlabError

TIMES = 50


@rollout(inner="of")
def of_domains(
    problems: list[Problem], run: Run, *, of: Rollout, domains: tuple[str, ...] = (), column: str = "domain"
) -> list[Group]:
    """What `of` samples for the problems whose `column` is one of these domains; all where none is named.

    Problems without the column are of the domain "other". In place of those of other domains, further ones of the training data
    are taken, so that a step has as many as without it.
    """
    if not domains:
        return of(problems, run)
    wanted, kept = len(problems), [p for p in problems if domain_of(p.meta, column) in domains]
    for _ in range(TIMES):
        if len(kept) >= wanted or run.more_problems is None:
            break
        kept += [p for p in run.more_problems(wanted - len(kept)) if domain_of(p.meta, column) in domains]
    if not kept:
        names = sorted({domain_of(p.meta, column) for p in problems})
        said = ", ".join(names)[:200]
        raise RewardlabError(f"no problem is of the domains {', '.join(domains)}: the column {column!r} says {said}")
    return of(kept, run)
