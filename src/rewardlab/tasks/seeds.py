"""Problems that are games by number: the number is the seed, and every tenth one is held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rewardlab.core import Problem, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import Shuffled

HELD_OUT = 10
"""Of so many numbers one is held out."""
NUMBERS = 1 << 24
"""Numbers that games may have."""


@dataclass(frozen=True)
class Numbered:
    """An endless source of games: position i has a number of its own, which is not held out."""

    make: Callable[[int], Problem]
    key: tuple[Any, ...]

    def __getitem__(self, position: int) -> Problem:
        if position < 0:
            raise IndexError(f"a source has no position {position}: positions count from 0")
        number = seed_of(*self.key, "train", position) % NUMBERS
        return self.make(number + (number % HELD_OUT == 0))


def games(
    make: Callable[[int], Problem], key: tuple[Any, ...], size: int | None, test_size: int
) -> tuple[Numbered | Shuffled, Sequence[Problem]]:
    """Games to train on, endless or `size` of them in epochs, and held-out ones."""
    endless = Numbered(make, key)
    if (size is not None and size < 1) or test_size < 1:
        raise RewardlabError(f"size and test_size must be at least 1, not {size} and {test_size}")
    train = endless if size is None else Shuffled([endless[i] for i in range(size)])
    return train, [make(HELD_OUT * (seed_of(*key, "test", i) % (NUMBERS // HELD_OUT))) for i in range(test_size)]
