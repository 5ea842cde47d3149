"""What a step logs where its processes work apart: all of them hold the same numbers, since a method's loop may decide by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rewardlab.core import Run
from rewardlab.engine.distributed import all_gather, on_rank_zero, world_size
from rewardlab.util.counted import Counted

T = TypeVar("T")
Part = tuple[int, dict[str, float]]
"""How many problems a process had, and what it logged of them."""


@contextmanager
def logged_apart(run: Run, problems: int, parts: list[Part]) -> Iterator[None]:
    """Within it `run` logs for this process alone, of so many problems; what it logs is added to `parts`, for `log_together`.

    A single process logs as ever.
    """
    if world_size() == 1:
        yield
        return
    whole, run.metrics = run.metrics, {}
    try:
        yield
    finally:
        parts.append((problems, run.metrics))
        run.metrics = whole


def log_together(parts: Sequence[Part], run: Run) -> None:
    """Log what all processes have logged apart: counts add up, of other numbers the mean over problems is taken."""
    if world_size() > 1:
        for name, value in merged([part for of_rank in all_gather(list(parts)) for part in of_rank]).items():
            # others have the count of what came before in the step already
            run.metrics[name] = Counted(run.metrics.get(name, 0.0) + value) if isinstance(value, Counted) else value


def merged(parts: Sequence[Part]) -> dict[str, float]:
    """One number of each name. A process that does not log a name, as it has no case of it, has no say in its mean."""
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for _, metrics in parts for name in metrics):
        told = [(problems, metrics[name]) for problems, metrics in parts if name in metrics]
        if isinstance(told[0][1], Counted):
            found[name] = Counted(sum(value for _, value in told))
        else:
            found[name] = sum(n * value for n, value in told) / sum(n for n, _ in told)
    return found


def made_by_first(make: Callable[[], T], run: Run) -> T:
    """What rank zero makes, for all (`on_rank_zero`); what it has logged, all have logged then."""
    made, metrics = on_rank_zero(lambda: (make(), run.metrics))
    run.metrics |= metrics
    return made
