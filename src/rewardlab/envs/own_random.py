"""Global random numbers of its own for a program that runs beside others, in the same event loop."""

from __future__ import annotations

import contextlib
import random
import threading
import types
from collections.abc import Awaitable, Generator, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
STEP = 1.0
"""Seconds that `pause` waits for a step to end: one that blocks until somebody replies must not be waited for."""


class OwnRandom:
    """Python's and numpy's global random numbers, as one program sees them: `seed` begins them, and no other program uses them up.

    Only what the program itself awaits is so: a task that it starts, or a thread, uses those that all share.
    """

    def __init__(self) -> None:
        self._states: tuple[Any, Any] | None = None
        self._seed: int | None = None
        self._paused, self._step = False, threading.Lock()

    def seed(self, seed: int) -> None:
        """Begin anew, from what the program does next."""
        # another thread may call this while the program is still on its way to what it waits for
        self._seed, self._paused = seed, False

    def pause(self) -> None:
        """Until it is seeded again the program uses those that all share: whoever runs meanwhile finds numbers of their own."""
        self._paused = True
        if self._step.acquire(timeout=STEP):
            self._step.release()

    async def of(self, work: Awaitable[T]) -> T:
        """The result of `work`, which uses them."""
        return await self._stepped(work)

    @types.coroutine
    def _stepped(self, work: Awaitable[T]) -> Generator[Any, Any, T]:
        steps = work.__await__()
        step = partial(next, steps)
        while True:
            # others run while the program waits, and then the numbers are theirs
            with self._step, self._in_use():
                try:
                    awaited = step()
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
            try:
                step = partial(steps.send, (yield awaited))
            except BaseException as e:
                step = partial(steps.throw, e)  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        if self._seed is not None and not self._paused:
            seed, self._seed = self._seed, None
            self._states = random.Random(seed).getstate(), np.random.RandomState(seed % (1 << 32)).get_state()
        if self._states is None or self._paused:
            yield
            return
        before, before_numpy = random.getstate(), np.random.get_state()
        random.setstate(self._states[0])
        np.random.set_state(self._states[1])
        try:
            yield
        finally:
            self._states = random.getstate(), np.random.get_state()
            random.setstate(before)
            np.random.set_state(before_numpy)
