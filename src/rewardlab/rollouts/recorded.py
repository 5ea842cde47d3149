"""Replies that somebody else wrote."""

from __future__ import annotations

from dataclasses import replace

from ..core import Group, Problem, RewardlabError, Run, Trajectory, rollout


@rollout
def recorded(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("solution",)) -> list[Group]:
    """One row per field of `problem.meta`, in order, written as the policy's own reply and tagged with the field's name."""
    for p in problems:
        for field in fields:
            if not isinstance(p.meta.get(field), str):
                raise RewardlabError(
                    f"problem {p.question[:60]!r} has no text {field!r} to learn from; it has: {', '.join(p.meta) or 'nothing'}. "
                    f"Use a task or a file with a column {field!r}"
                )
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, tag=f, path=(i,)) for t in asked for i, f in enumerate(fields)]
    done = run.policy.write(rows, [str(t.problem.meta[t.tag]) for t in rows])
    for t in done:
        run.policy.check_fits(t, 0)
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]
