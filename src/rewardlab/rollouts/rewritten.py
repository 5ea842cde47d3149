"""Groups of replies to a question, and to the same question in other words."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.errors import RewardlabError

ORIGINAL = "rewrite_of"
"""The column of a rewritten problem that holds the key of the problem whose rewrite it is."""


@rollout(inner="of", groups=lambda **_: 2)
def with_rewrites(problems: list[Problem], run: Run, *, of: Rollout, column: str = "rewrite") -> list[Group]:
    """What `of` samples for each problem, and for the same problem with the text in `column` as its question.

    A step has twice as many groups as it has problems. A rewritten problem is told by its column `rewrite_of`, the key of the
    other. Further problems that `of` asks for itself have no rewrites.
    """
    return of([each for problem in problems for each in (problem, _rewritten(problem, column))], run)


def _rewritten(problem: Problem, column: str) -> Problem:
    text = problem.meta.get(column)
    if not isinstance(text, str) or not text.strip():
        has = ", ".join(problem.meta) or "nothing"
        raise RewardlabError(f"problem {problem.question[:60]!r} has no text {column!r}, its question reworded; it has: {has}")
    return replace(problem.reworded(text), meta={**problem.meta, ORIGINAL: problem.key})
