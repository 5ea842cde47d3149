"""How far a policy evolves programs, as it is, from their first ones on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.rewards.reward import Reward
from rewardlab.text.evolution import ASK, PARENT, Entry, one_round, program_of


@measure
def evolution(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, by: Reward | None = None, rounds: PositiveInt = 4,
    capacity: PositiveInt = 10_000, exploit: Share = 0.6, archive: PositiveInt = 1000, start: str = "start", ask: str = ASK,
) -> dict[str, float]:  # fmt: skip
    """best: the mean over problems of the best score after `rounds` of children of one parent, in databases of their own.

    first: after one round.  lazy: share of children that are their parents; works: that score above 0.
    rollout: the children of each parent.  by: a reward; None: the task's verifier.
    """
    part = by or run.verify
    tables, bests, children = dict[str, list[Entry]](), list[float](), list[tuple[bool, bool]]()
    for at in range(rounds):
        groups = one_round(
            problems, tables, run, of=rollout, by=part, capacity=capacity, exploit=exploit, archive=archive, start=start, ask=ask,
            at=at,
        )  # fmt: skip
        scores = part(groups, run)
        children += [
            (program_of(t.reply) == t.problem.meta[PARENT], (s.total or 0.0) > 0)
            for g, row in zip(groups, scores, strict=True) for t, s in zip(g, row, strict=True)
        ]  # fmt: skip
        bests.append(float(np.mean([max(e["score"] for e in tables[p.key]) for p in problems])))
    return {
        "best": bests[-1], "first": bests[0], "lazy": float(np.mean([x for x, _ in children])),
        "works": float(np.mean([x for _, x in children])), "n": float(len(problems)),
    }  # fmt: skip
