"""Recorded replies, which the policy did not sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Message, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError
from rewardlab.text.splitters import mark


@rollout(rows=lambda fields, **_: len(fields))
def recorded(
    problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("solution",), steps: str | None = None
) -> list[Group]:
    """One row per field of `problem.meta`, in order, recorded as the policy's own reply and tagged with the field's name.

    A field holds a reply, or a list in which replies and the messages that answer them take turns. `steps` names the splitter that
    marks where reasoning steps end.
    """
    # checked first, so that an error names problem and column
    for p in problems:
        for field in fields:
            _check(p, field)
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, tag=f, path=(i,)) for t in prompts for i, f in enumerate(fields)]
    done = _write(rows, [_texts(t.problem.meta[t.tag]) for t in rows], run)
    # recorded text may be longer than the context
    for t in done:
        run.policy.check_fits(t, 0)
    if steps:
        done = [mark(t, steps, run.policy.pieces, run.policy.name) for t in done]
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]


def _check(problem: Problem, field: str) -> None:
    """Raise RewardlabError unless the field holds text."""
    value = problem.meta.get(field)
    if not value or not all(isinstance(text, str) for text in _texts(value)):
        raise RewardlabError(
            f"problem {problem.question[:60]!r} has no text {field!r} to learn from; "
            f"it has: {', '.join(problem.meta) or 'nothing'}. Use a task or a file with a column {field!r}, or name the "
            "column of the replies with --completion-column"
        )


def _texts(value: Any) -> list[Any]:
    """The value of a field as a list: one reply is a list of one."""
    return value if isinstance(value, list) else [value]


def _write(rows: list[Trajectory], texts: list[list[str]], run: Run) -> list[Trajectory]:
    """Append the texts of each row, alternately as the policy's reply and as the message that answers it."""
    rows = list(rows)
    for turn in range(max(map(len, texts))):
        # indices of the rows that have a text for this turn
        active = [i for i, row in enumerate(texts) if len(row) > turn]
        before, replies = [rows[i] for i in active], [texts[i][turn] for i in active]
        answers = [(Message("user", text),) for text in replies]
        after = run.policy.read(before, answers) if turn % 2 else run.policy.write(before, replies)
        for i, t in zip(active, after, strict=True):
            rows[i] = t
    return rows
