"""Replies that are read, and what is written about them before they are scored: a critique, or a trace of tool calls.

A row is a question with a reply, which are read, and the text about the reply, which is recorded as written by the model that
learns. So a language model's loss on the row is that of the text alone, and a scalar head at the row's end has read all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewardlab.core import Group, Message, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.text.filled import filled

Text = Sequence[str]
"""What is written: texts, and between them the messages that answer them, such as results of a tool."""


def about(problem: Problem, reply: str, ask: str) -> Problem:
    """The question about a reply. ask: with {question} and {answer}."""
    return problem.reworded(filled(ask, question=problem.question, answer=reply))


def explained(rows: Sequence[tuple[Problem, Text]], run: Run, per_group: int = 2) -> list[Group]:
    """A recorded row for each question about a reply, `per_group` of them in a group, side by side as they come.

    Raises RewardlabError where a row does not fit the context.
    """
    problems = [problem for problem, _ in rows]
    done = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    for turn in range(max(len(texts) for _, texts in rows)):
        active = [i for i, (_, texts) in enumerate(rows) if len(texts) > turn]
        said = [rows[i][1][turn] for i in active]
        before = [done[i] for i in active]
        after = run.policy.read(before, [(Message("user", x),) for x in said]) if turn % 2 else run.policy.write(before, said)
        for i, t in zip(active, after, strict=True):
            done[i] = t
    for t in done:
        run.policy.check_fits(t, 0)
    return [done[i : i + per_group] for i in range(0, len(done), per_group)]


@rollout(rows=lambda inner, **_: inner.rows_per_problem)
def explained_by(problems: list[Problem], run: Run, *, ask: str, inner: Rollout, writer: str = "writer") -> list[Group]:
    """What a model of the run writes about the reply in each row's column `reply`, by the rollout `inner`.

    A measure that samples so says how the score of a new reply is made, and an export carries it (`models/writing.py`).
    ask: as in `about`.
    """
    return inner([about(p, p.meta["reply"], ask) for p in problems], replace(run, policy=run.model(writer)))


def with_reply(problem: Problem, reply: str) -> Problem:
    """The problem with the reply that is to be explained."""
    return replace(problem, meta={**problem.meta, "reply": reply})
