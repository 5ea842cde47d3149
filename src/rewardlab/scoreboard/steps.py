"""Benchmarks of steps: a solution with labelled steps as an item, and how it was judged, for the figures of `evals.process`."""

from __future__ import annotations

from rewardlab.data.solutions import Solution
from rewardlab.evals.process import Judged
from rewardlab.scoreboard.items import Item, Verdict, users


def item_of(solution: Solution, name: str, subset: str) -> Item:
    """One reply, whose steps are asked about. It is worth 1 where no step is known to be wrong."""
    whole = "\n\n".join(solution.steps)
    worth = float(solution.first_error is None)
    return Item(
        name, users(solution.prompt), (whole,), (worth,), subset, compared=(), steps=(solution.steps,), labels=(solution.labels,)
    )  # fmt: skip


def judged(item: Item, verdict: Verdict) -> list[Judged]:
    """The replies of an item of which every step was judged, in order; those without such a verdict are left out."""
    known = zip(item.steps, item.labels, verdict.steps, strict=False)
    return [
        Judged(Solution(item.question, steps, labels), tuple(chances))
        for steps, labels, chances in known
        if chances is not None and len(chances) == len(steps)
    ]
