"""The cost of served models, and a budget that no request may exceed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rewardlab.clients.endpoint import Settings
from rewardlab.errors import Unusable

MILLION = 1e6


class OverBudget(Unusable):
    """A request might exceed the budget, so it was not sent."""


@dataclass
class Usage:
    """requests: that were answered.  cached: answered from disk, for nothing.  retried: tries after one that failed.  read,
    written: tokens, as the server counts them.  assumed: those among them for which there was no count, taken to be the most that
    was possible.
    """

    requests: int = 0
    cached: int = 0
    retried: int = 0
    read: int = 0
    written: int = 0
    assumed: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.read + self.written


def bill(usage: Mapping[str, Any]) -> str:
    """What a served model was asked, in a line: its name under "model", and the fields of its Usage."""
    parts = [f"{usage['requests']:,} requests", f"{usage['cached']:,} more from the cache", f"{usage['retried']:,} retries",
             f"{usage['read']:,} tokens read", f"{usage['written']:,} written"]  # fmt: skip
    parts += [f"cost {usage['cost']:.4g}"] if usage["cost"] else []
    return f"{usage['model']}: {', '.join(parts)}"


@dataclass
class Bill:
    """What one try costs. It is the most that is possible until the server has counted; nothing if it refused the request."""

    read: int
    written: int
    assumed: bool = True

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def counted(self, read: int, written: int) -> None:
        self.read, self.written, self.assumed = read, written, False


class Budget:
    """Tokens and money spent so far, and the most that may be. Used in one event loop."""

    def __init__(self, settings: Settings):
        self.settings, self.usage = settings, Usage()
        self._open: list[Bill] = []
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def bill(self, read: int, written: int) -> AsyncIterator[Bill]:
        """A context in which one try is made. It waits while tries under way might use up what is left.

        read, written: the most tokens that it can take. Raises OverBudget if even without the others too little is left.
        """
        bill = Bill(read, written)
        async with self._changed:
            while not self._fits([*self._open, bill]):
                if not self._fits([bill]):
                    raise OverBudget(self._refusal(bill))
                await self._changed.wait()
            self._open.append(bill)
        try:
            yield bill
        finally:
            async with self._changed:
                self._open.remove(bill)
                self._spend(bill)
                self._changed.notify_all()

    def _price(self, bill: Bill) -> float:
        return (bill.read * self.settings.price_in + bill.written * self.settings.price_out) / MILLION

    def _fits(self, bills: list[Bill]) -> bool:
        tokens, cost = self.usage.tokens + sum(b.tokens for b in bills), self.usage.cost + sum(map(self._price, bills))
        most, dear = self.settings.budget, self.settings.cost
        return (most is None or tokens <= most) and (dear is None or cost <= dear)

    def _spend(self, bill: Bill) -> None:
        self.usage.read += bill.read
        self.usage.written += bill.written
        self.usage.assumed += bill.tokens * bill.assumed
        self.usage.cost += self._price(bill)

    def _refusal(self, bill: Bill) -> str:
        most, dear = self.settings.budget, self.settings.cost
        if dear is not None and self.usage.cost + self._price(bill) > dear:
            spent, limit = f"{self.usage.cost:.4g} of cost={dear:g} is", "cost="
            further = f"cost up to {self._price(bill):.4g}"
        else:
            spent, limit = f"{self.usage.tokens:,} of budget={most:,} tokens are", "budget="
            further = f"take up to {bill.tokens:,}"
        return (
            f"the budget is used up: {spent} spent, and the next request may {further}. Replies so far are kept: give a higher "
            f"{limit}, or run or resume the same again, which counts anew"
        )
