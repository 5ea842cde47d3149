"""Recorded replies, which the policy did not sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Message, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError


@rollout(rows=lambda fields: len(fields))
def recorded(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("solution",)) -> list[Group]:
    """One row per field of `problem.meta`, in order, written in the policy's name and tagged with the field's name.

    A field holds a reply, or a list in which replies and the messages that answer them take turns.
    """
    for p in problems:
        for field in fields:
            _check(p, field)
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, tag=f, path=(i,)) for t in prompts for i, f in enumerate(fields)]
    done = _write(rows, [_texts(t.problem.meta[t.tag]) for t in rows], run)
    for t in done:
        run.policy.check_fits(t, 0)
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]


def _check(problem: Problem, field: str) -> None:
    value = problem.meta.get(field)
    if not value or not all(isinstance(text, str) for text in _texts(value)):
        raise RewardlabError(
            f"problem {problem.question[:60]!r} has no text {field!r} to learn from; "
            f"it has: {', '.join(problem.meta) or 'nothing'}. Use a task or a file with a column {field!r}"
        )


def _texts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _write(rows: list[Trajectory], texts: list[list[str]], run: Run) -> list[Trajectory]:
    """Write the texts of each row by turns: the first as the policy's, the second as the answer to it, and so on."""
    rows = list(rows)
    for turn in range(max(map(len, texts))):
        here = [i for i, row in enumerate(texts) if len(row) > turn]
        before, now = [rows[i] for i in here], [texts[i][turn] for i in here]
        answers = [(Message("user", text),) for text in now]
        after = run.policy.read(before, answers) if turn % 2 else run.policy.write(before, now)
        for i, t in zip(here, after, strict=True):
            rows[i] = t
    return rows
