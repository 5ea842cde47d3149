"""Why rollouts got no verdict: what the reward says, what the task's verifier says, and which row of a file it is about."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Run, Scores, Trajectory


def why_missing(groups: Sequence[Group], scores: Scores, run: Run) -> str:
    """The reason for the first rollout without a verdict that has one; with it the verifier's, where the reward asked it for one.

    Rewards that label steps by the verifier say no more than that it gave none.
    """
    missing = [(t, s) for group, row in zip(groups, scores, strict=True) for t, s in zip(group, row, strict=True) if s.missing]
    trajectory, score = next((of for of in missing if of[1].why), missing[0])
    why = score.why or "the reward gave no reason"
    verdict = run.verdict_of(trajectory)
    if verdict is None or not verdict.missing:
        return why
    told = "" if verdict.why in why else f"; the task's verifier: {verdict.why}"
    return why + told + _row(trajectory)


def _row(trajectory: Trajectory) -> str:
    """The row of a file, and its columns."""
    problem = trajectory.problem
    columns = ["prompt", *(["answer"] if problem.answer is not None else []), *problem.meta]
    return f" ({problem.place} has the columns {', '.join(columns)})" if problem.place else ""
