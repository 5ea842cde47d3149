"""Separate work of several processes with collective operations in it, such as a pass through sharded weights.

In a section every process does work of its own, more or less of it, or none. Before an operation that needs all, a process takes
its turn: all agree on one of the operations that are asked for, those that asked for it do it, and the others join in, for
nothing but to send what they hold. A process whose work is done joins in until that of all is. Outside of sections all
processes do the same work, and meet in each operation anyway.

    with LOCKSTEP.section():                  with LOCKSTEP.section():
        policy.score(trajectories)                pass                        # joins every pass of the first process
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist


class Lockstep:
    """The operations that need all processes, and where they take turns.  learning: whether passes go backward too."""

    def __init__(self) -> None:
        self.joins: list[Callable[[], object]] = []
        self.inside, self.joining, self.learning = False, False, False

    @property
    def needed(self) -> bool:
        """Whether there are such operations."""
        return bool(self.joins)

    def add(self, join: Callable[[], object]) -> int:
        """Register an operation, in all processes in the same order; its number.  join: takes part in it without a use for it."""
        self.joins.append(join)
        return len(self.joins) - 1

    def take_turn(self, operation: int) -> None:
        """Call this before the operation: it returns when all others are about to do it or to join in."""
        if self.inside and not self.joining:
            while (turn := self._agreed(operation)) != operation:
                self._join(turn)

    @contextmanager
    def section(self, learning: bool = False) -> Iterator[None]:
        """A context for work that differs between processes. One within another belongs to it."""
        if not self.needed or self.inside:
            yield
            return
        self.inside, self.learning = True, learning
        try:
            yield
            # not after an error: the others learn of it when this process ends
            while (turn := self._agreed(None)) is not None:
                self._join(turn)
        finally:
            self.inside = False

    def _agreed(self, operation: int | None) -> int | None:
        """The first of the operations that processes ask for; None where all are done."""
        asked = torch.zeros(len(self.joins), dtype=torch.int32)
        if operation is not None:
            asked[operation] = 1
        # on the CPU, where nobody has to wait for a GPU
        dist.all_reduce(asked)
        wanted = asked.nonzero()
        return int(wanted[0]) if len(wanted) else None

    def _join(self, operation: int | None) -> None:
        assert operation is not None
        self.joining = True
        try:
            self.joins[operation]()
        finally:
            self.joining = False


LOCKSTEP = Lockstep()
"""That of this process."""
