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
    are taken, so that a step has as many as without it. Problems that `of` asks for itself are of these domains too.
    """
    if not domains:
        return of(problems, run)
    further = run.more_problems
    kept, seen = [p for p in problems if domain_of(p.meta, column) in domains], list(problems)

    def more(n: int) -> list[Problem]:
        found: list[Problem] = []
        for _ in range(TIMES):
            if len(found) >= n or further is None:
                break
            new = further(n - len(found))
            found += [p for p in new if domain_of(p.meta, column) in domains]
            seen.extend(new)
        return found

    kept += more(len(problems) - len(kept))
    if not kept:
        names = ", ".join(sorted({domain_of(p.meta, column) for p in seen}))[:200]
        raise RewardlabError(f"no problem is of the domains {', '.join(domains)}: the column {column!r} says {names}")
    run.more_problems = further and more
    try:
        return of(kept, run)
    finally:
        run.more_problems = further
