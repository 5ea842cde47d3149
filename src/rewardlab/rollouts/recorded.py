"""Replies that somebody else wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Message, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError


@rollout
def recorded(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("solution",)) -> list[Group]:
    """One row per field of `problem.meta`, in order, written as the policy's own and tagged with the field's name.

    A field holds a reply, or a list: replies, and between them what is answered to the policy.
    """
    for p in problems:
        for field in fields:
            _check(p, field)
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, tag=f, path=(i,)) for t in asked for i, f in enumerate(fields)]
    done = _write(rows, [_said(t.problem.meta[t.tag]) for t in rows], run)
    for t in done:
        run.policy.check_fits(t, 0)
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]


def _check(problem: Problem, field: str) -> None:
    said = problem.meta.get(field)
    if not said or not all(isinstance(text, str) for text in _said(said)):
        raise RewardlabError(
            f"problem {problem.question[:60]!r} has no text {field!r} to learn from; "
            f"it has: {', '.join(problem.meta) or 'nothing'}. Use a task or a file with a column {field!r}"
        )


def _said(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _write(rows: list[Trajectory], said: list[list[str]], run: Run) -> list[Trajectory]:
    """Texts by turns: the first of each row is the policy's, the second is answered to it, and so on."""
    rows = list(rows)
    for turn in range(max(map(len, said))):
        here = [i for i, texts in enumerate(said) if len(texts) > turn]
        before, texts = [rows[i] for i in here], [said[i][turn] for i in here]
        if turn % 2:
            after = run.policy.read(before, [(Message("user", text),) for text in texts])
        else:
            after = run.policy.write(before, texts)
        for i, t in zip(here, after, strict=True):
            rows[i] = t
    return rows
