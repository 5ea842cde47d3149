"""Live objects behind episodes whose state is what was done so far: kept at their point, and made again where missing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Live(Generic[T]):
    """Objects by what they are of, and by the actions that they have taken; several may be at the same point. Threads may share it.

    size: how many are kept; the oldest go first, to `drop`.
    """

    def __init__(self, size: int = 4096, drop: Callable[[T], Any] = lambda x: None) -> None:
        self.size, self.drop = size, drop
        self._kept: OrderedDict[tuple[Hashable, tuple[Any, ...]], list[T]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def keep(self, of: Hashable, actions: Sequence[Any], x: T) -> None:
        """Keep an object that has taken these actions."""
        key = (of, tuple(actions))
        gone: list[T] = []
        with self._lock:
            self._kept.setdefault(key, []).append(x)
            self._kept.move_to_end(key)
            while len(self) > self.size:
                gone += self._kept.popitem(last=False)[1]
        # outside, since it may take time
        for old in gone:
            self.drop(old)

    def take(self, of: Hashable, actions: Sequence[Any], begin: Callable[[], T], act: Callable[[T, Any], Any]) -> T:
        """An object that has taken these actions: a kept one, or one that `begin` makes and that takes them again by `act`.

        It is no longer kept, so that none stays at an unknown point if its next action fails.
        """
        with self._lock:
            if found := self._kept.get((of, tuple(actions))):
                x = found.pop()
                if not found:
                    del self._kept[of, tuple(actions)]
                return x
        x = begin()
        for action in actions:
            act(x, action)
        return x

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            gone = [x for found in self._kept.values() for x in found]
            self._kept.clear()
        for old in gone:
            self.drop(old)
