"""Verdicts that one process has asked the task's verifier for, known to all: to ask again would cost as much, and a judge or a
sandbox under load may say something else, by which processes would go apart.

Rollouts lose their identity on the way to another process, and with it what is remembered of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.engine.distributed import on_rank_zero, world_size

Row = list[Score | None]
"""The verdicts on the rollouts of a group; None where nobody has asked for one."""


def told(groups: Sequence[Group], run: Run) -> list[Row]:
    """What this process knows of each group."""
    return [[run.verdict_of(t) for t in group] for group in groups]


def remember(groups: list[Group], rows: Sequence[Sequence[Score | None]], run: Run) -> None:
    """From now on the run knows these verdicts."""
    # where there are none, those of the step before stay: the log may still read them
    if any(score is not None for row in rows for score in row):
        run.verified.remember(groups, rows, run.step)


class _Shared:
    """The verifier, which rank zero asks for all: in work that all processes do alike."""

    def __init__(self, verify: Any):
        self.verify = verify

    def __call__(self, groups: list[Group], run: Run) -> Scores:
        return on_rank_zero(lambda: self.verify(groups, run))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.verify, name)


@contextmanager
def asked_by_first(run: Run) -> Iterator[None]:
    """Within it, where all processes do the same, rank zero alone asks the run's verifier, and all learn what it said."""
    verify = run.verify
    run.verify = verify if verify is None or world_size() == 1 else _Shared(verify)
    try:
        yield
    finally:
        run.verify = verify


def asked(groups: list[Group], run: Run) -> Scores:
    """The verdicts on these rollouts, which all processes have; rank zero asks for those that are not known yet."""
    scores = on_rank_zero(lambda: run.verdicts(groups))
    remember(groups, scores, run)
    return scores
