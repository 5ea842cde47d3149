"""The tokens that a run's models compute, over all its processes: what its budget is counted in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rewardlab.core import Run
from rewardlab.core.run import TOKENS
from rewardlab.engine.distributed import all_gather, is_rank_zero


class Bill:
    """What all models have computed since the last call of `settle`, and how much of it this rank computed for all."""

    def __init__(self, run: Run):
        self.run = run
        self._counted, self._sharded = run.token_count.total, 0

    @contextmanager
    def sharded(self) -> Iterator[None]:
        """Around work that is divided among ranks: the tokens of every rank are billed.

        All other work is repeated by every rank, or done by rank zero for all, and is billed as rank zero counts it.
        """
        before = self.run.token_count.total
        yield
        self._sharded += self.run.token_count.total - before

    def settle(self) -> None:
        """Add what all models have computed since the last call to the run's total. Nothing else reads their counts."""
        count = self.run.token_count.total
        # rank zero bills all it did, sharded or not; the others only their share, or repeated work would count twice
        computed_here = count - self._counted if is_rank_zero() else self._sharded
        # kept in memory, which is in the checkpoint: a resumed run continues its budget
        self.run.memory[TOKENS] = self.run.tokens + sum(all_gather(computed_here))
        self._counted, self._sharded = count, 0
