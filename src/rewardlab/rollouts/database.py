"""Replies that begin from earlier ones: a database of programs and their scores, from which parents are sampled and which grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Problem, Rollout, Run, rollout, uniform_of
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.rewards.evolved import MEMORY, Entry, program_of
from rewardlab.rewards.reward import Reward
from rewardlab.text.filled import filled

ASK = "{question}\n\nA program with the score {score}:\n{program}\n\nWrite a better program, as a whole."
"""What the policy reads, with {question}, {score} and {program}."""
PARENT = "parent"


def begun(problem: Problem, column: str) -> list[Entry]:
    """The database of a problem that was not seen before: its first program, whose score nobody has computed yet."""
    start = problem.meta.get(column)
    if not isinstance(start, str) or not start.strip():
        raise RewardlabError(f"problem {problem.question[:60]!r} has no first program in the column {column!r} to evolve")
    return [{"program": start.strip(), "score": 0.0, "step": -1}]


def parent_of(entries: Sequence[Entry], exploit: float, key: tuple[Any, ...]) -> Entry:
    """The best, the first of equals, in a share `exploit` of cases, else any; chance depends on the key alone."""
    if uniform_of("exploit", *key) < exploit:
        return max(entries, key=lambda e: e["score"])
    return entries[int(uniform_of("parent", *key) * len(entries))]


def asked(problem: Problem, parent: Entry, ask: str) -> Problem:
    """The problem as the policy reads it, with its parent in the column `parent`; answer and columns stay."""
    score = f"{parent['score']:.2f}".removeprefix("0")
    question = filled(ask, question=problem.question, program=parent["program"], score=score)
    made = problem.reworded(question)
    return replace(made, meta={**made.meta, PARENT: parent["program"], "database": problem.key})


def inserted(entries: list[Entry], found: Sequence[tuple[str, float]], step: int, capacity: int) -> list[Entry]:
    """The database with new programs that scored above 0, of equal texts the one that is there; the worst leave where it is full."""
    known = {e["program"] for e in entries}
    new = {program: score for program, score in found if program and score > 0 and program not in known}
    grown = [*entries, *({"program": p, "score": s, "step": step} for p, s in new.items())]
    # a stable sort: of equals the older stay
    kept = {id(e) for e in sorted(grown, key=lambda e: -e["score"])[:capacity]}
    return [e for e in grown if id(e) in kept]


def one_round(
    problems: Sequence[Problem], tables: dict[str, list[Entry]], run: Run, *, of: Rollout, by: Reward, capacity: int, exploit: float,
    start: str, ask: str, at: int,
) -> list[Group]:  # fmt: skip
    """Children of one parent of each problem, which are scored and join its table; `at` numbers the round."""
    for p in problems:
        tables.setdefault(p.key, begun(p, start))
    parents = [parent_of(tables[p.key], exploit, (run.seed, at, p.key)) for p in problems]
    groups = of([asked(p, parent, ask) for p, parent in zip(problems, parents, strict=True)], run)
    for group, row in zip(groups, by(groups, run), strict=True):
        key = group[0].problem.meta["database"]
        found = [(program_of(t.reply), s.total or 0.0) for t, s in zip(group, row, strict=True)]
        tables[key] = inserted(tables[key], found, at, capacity)
    return groups


@rollout(inner="of")
def evolving(
    problems: list[Problem], run: Run, *, of: Rollout, by: Reward, capacity: PositiveInt = 1000, exploit: Share = 0.5,
    start: str = "start", ask: str = ASK,
) -> list[Group]:  # fmt: skip
    """What `of` samples from the problems with a program of their database in the prompt, which its children join by their reward.

    by: a reward of replies; above 0 for what works.  capacity: programs of each problem that are kept, the best.  exploit: how
    often the parent is the best one.  start: the column of the first program.  ask: what is read.  The databases are in the run's
    memory. Logged: best, the mean over problems of the best score that was found.  Wang et al. 2025, arXiv:2511.23473
    """
    tables = run.memory.setdefault(MEMORY, {})
    how: dict[str, Any] = {"capacity": capacity, "exploit": exploit, "start": start, "ask": ask}
    groups = one_round(problems, tables, run, of=of, by=by, at=run.step, **how)
    run.log("best", sum(max(e["score"] for e in tables[p.key]) for p in problems) / len(problems))
    return groups
