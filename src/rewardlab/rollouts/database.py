"""Replies that begin from earlier ones: a database of programs and their scores, from which parents are sampled and which grows."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.rewards.reward import Reward
from rewardlab.text.evolution import ASK, MEMORY, one_round


@rollout(inner="of")
def evolving(
    problems: list[Problem], run: Run, *, of: Rollout, by: Reward, capacity: PositiveInt = 10_000, exploit: Share = 0.6,
    archive: PositiveInt = 1000, start: str = "start", ask: str = ASK,
) -> list[Group]:  # fmt: skip
    """What `of` samples from the problems with a program of their database in the prompt, which its children join by their reward.

    by: a reward of replies; above 0 for what works.  capacity: programs of each problem that are kept, the best.  exploit: how
    often the parent is any of the `archive` best ones, and else any program.  start: the column of the first program.  ask: what is
    read.  The databases are in the run's memory. Logged: best, the mean over problems of the best score that was found.
    Wang et al. 2025, arXiv:2511.23473
    """
    tables = run.memory.setdefault(MEMORY, {})
    how: dict[str, Any] = {"capacity": capacity, "exploit": exploit, "archive": archive, "start": start, "ask": ask}
    groups = one_round(problems, tables, run, of=of, by=by, at=run.step, **how)
    run.log("best", sum(max(e["score"] for e in tables[p.key]) for p in problems) / len(problems))
    return groups
