"""Problems chosen from a source by their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .sources import TRIES_PER_PROBLEM, Shuffled


@dataclass(frozen=True)
class Chosen(Shuffled):
    """Problems chosen from another source, `whole`, in epochs, each in a new order.  choice: a name for what was chosen."""

    whole: Any = None
    choice: str = ""


def chosen(
    source: Any, positions: Sequence[int], choice: str, seed: int = 0, columns: Mapping[int, Mapping[str, Any]] | None = None
) -> Chosen:
    """The problems at these positions of a source, or of what it was itself chosen from; the same object, if this is its choice.

    So a method can ask for its choice in every step, and after a run was resumed.  columns: what the problem at a position has
    besides.
    """
    if isinstance(source, Chosen):
        if source.choice == choice:
            return source
        source = source.whole
    added = columns or {}
    problems = [source[i] for i in positions]
    also = [replace(p, meta={**p.meta, **added[i]}) if i in added else p for i, p in zip(positions, problems, strict=True)]
    return Chosen(also, seed, whole=source, choice=choice)


def epoch_of(source: Any) -> int | None:
    """How many problems an epoch of a source has; None where it has no end."""
    try:
        return len(source)
    except TypeError:
        # one over another source has a length where that has one
        return None


def distinct_positions(source: Any, start: int, n: int) -> list[int]:
    """Where, from `start` on, the first n distinct problems of a source are; fewer, if it has not so many."""
    # an epoch that begins within another one may miss a problem; two in a row hold them all
    epoch = epoch_of(source)
    last = start + (TRIES_PER_PROBLEM * n if epoch is None else 2 * epoch)
    found: dict[str, int] = {}
    for position in range(start, last):
        found.setdefault(source[position].key, position)
        if len(found) == n:
            break
    return list(found.values())
