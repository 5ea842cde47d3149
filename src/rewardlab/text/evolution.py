"""Databases of programs and their scores, from which parents are sampled, and which children join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Problem, Run, Scores, Trajectory, uniform_of
from rewardlab.errors import RewardlabError

from .blocks import last_block
from .filled import filled

MEMORY = "programs.database"
"""The key of `run.memory` that holds, by the key of the problem, a list of entries."""
Entry = dict[str, Any]
"""program: its text.  score.  step: in which it was written; -1 for the first."""
Sampler = Callable[[list[Problem], Run], list[Group]]
Judge = Callable[[list[Group], Run], Scores]
ASK = "{question}\n\nA program with the score {score}:\n{program}\n\nWrite a better program, as a whole."
"""What the policy reads, with {question}, {score} and {program}."""
PARENT = "parent"


def program_of(reply: str) -> str:
    """The last fenced code block of a reply, or all of it."""
    return (last_block(reply) or reply).strip()


def begun(problems: Sequence[Problem], run: Run, by: Judge, column: str) -> list[list[Entry]]:
    """The databases of problems that were not seen before: the first program of each, and what it scores as a reply."""
    texts = [p.meta.get(column) for p in problems]
    for p, text in zip(problems, texts, strict=True):
        if not isinstance(text, str) or not text.strip():
            raise RewardlabError(f"problem {p.question[:60]!r} has no first program in the column {column!r} to evolve")
    read = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = run.policy.write(read, [str(text).strip() for text in texts])
    scores = by([[t] for t in rows], run)
    return [[{"program": t.reply.strip(), "score": s.total or 0.0, "step": -1}] for t, (s,) in zip(rows, scores, strict=True)]


def parent_of(entries: Sequence[Entry], exploit: float, archive: int, key: tuple[Any, ...]) -> Entry:
    """Any of the `archive` best, the older of equals, in a share `exploit` of cases, else any; chance depends on the key alone."""
    # a stable sort: of equals the older come first
    known = sorted(entries, key=lambda e: -e["score"])[:archive] if uniform_of("exploit", *key) < exploit else entries
    return known[int(uniform_of("parent", *key) * len(known))]


def asked(problem: Problem, parent: Entry, ask: str) -> Problem:
    """The problem as the policy reads it, with its parent in the column `parent`; answer and columns stay."""
    score = f"{parent['score']:.2f}".removeprefix("0")
    question = filled(ask, question=problem.question, program=parent["program"], score=score)
    made = problem.reworded(question)
    return replace(made, meta={**made.meta, PARENT: parent["program"], "database": problem.key})


def inserted(entries: list[Entry], found: Sequence[tuple[str, float]], step: int, capacity: int) -> list[Entry]:
    """The database with new programs that scored above 0, of equal texts the one that is there; the worst leave, if it is full."""
    known = {e["program"] for e in entries}
    new = {program: score for program, score in found if program and score > 0 and program not in known}
    grown = [*entries, *({"program": p, "score": s, "step": step} for p, s in new.items())]
    # a stable sort: of equals the older stay
    kept = {id(e) for e in sorted(grown, key=lambda e: -e["score"])[:capacity]}
    return [e for e in grown if id(e) in kept]


def one_round(
    problems: Sequence[Problem], tables: dict[str, list[Entry]], run: Run, *, of: Sampler, by: Judge, capacity: int,
    exploit: float, archive: int, start: str, ask: str, at: int,
) -> list[Group]:  # fmt: skip
    """Children of one parent of each problem, which are scored and join its table; `at` numbers the round."""
    if new := [p for p in problems if p.key not in tables]:
        tables.update(zip((p.key for p in new), begun(new, run, by, start), strict=True))
    parents = [parent_of(tables[p.key], exploit, archive, (run.seed, at, p.key)) for p in problems]
    groups = of([asked(p, parent, ask) for p, parent in zip(problems, parents, strict=True)], run)
    for group, row in zip(groups, by(groups, run), strict=True):
        key = group[0].problem.meta["database"]
        found = [(program_of(t.reply), s.total or 0.0) for t, s in zip(group, row, strict=True)]
        tables[key] = inserted(tables[key], found, at, capacity)
    return groups
