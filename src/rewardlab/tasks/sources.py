"""Sources of problems: by position, so that one number resumes the data; and splits that cannot overlap."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, overload

from rewardlab.core import Problem, seed_of
from rewardlab.errors import RewardlabError

Sample = Callable[[random.Random], Problem]
"""Samples a problem from a random stream."""

TEST_SHARE = 0.1
TRIES_PER_PROBLEM = 30


def held_out(problem: Problem, share: float = TEST_SHARE) -> bool:
    """Whether a problem belongs to the test set. The text of its prompt alone decides, so no sample can be in both sets."""
    # 13 hexadecimal digits are 52 bits, which a float compares exactly
    return int(problem.key[:13], 16) < share * 16**13


def training(sample: Sample, key: tuple[Any, ...], size: int | None = None) -> Generated | Shuffled:
    """The training problems of a generated task: endless, or, with a `size`, so many distinct ones in epochs.

    The finite set holds the first distinct problems of the endless one. Raises RewardlabError if there are fewer than `size`.
    """
    endless = Generated(sample, key)
    if size is None:
        return endless
    if size < 1:
        raise RewardlabError(f"size must be at least 1, not {size}")
    distinct: dict[str, Problem] = {}
    # bounded, since a small task may not have `size` different problems at all
    for position in range(TRIES_PER_PROBLEM * size):
        problem = endless[position]
        distinct.setdefault(problem.key, problem)
        if len(distinct) == size:
            # in the order of the endless source, so that a larger `size` only adds problems
            return Shuffled(list(distinct.values()))
    raise RewardlabError(f"this task has about {len(distinct)} different training problems; size={size} is more than that")


@dataclass(frozen=True)
class Generated:
    """An endless source: position i is sampled with the seed (key, "train", i), again until it is not held out."""

    sample: Sample
    key: tuple[Any, ...]

    def __getitem__(self, position: int) -> Problem:
        rng = random.Random(seed_of(*self.key, "train", _natural(position)))
        # the same stream goes on, so a position always gives the same problem
        while held_out(problem := self.sample(rng)):
            pass
        return problem


def test_set(sample: Sample, key: tuple[Any, ...], size: int) -> OnDemand:
    """The held-out problems that belong to `Generated(sample, key)`: distinct, always the same, sampled when they are asked for.

    `size` of them, or fewer where the task has so few problems that further samples only repeat.
    """
    if size < 1:
        raise RewardlabError(f"test_size must be at least 1, not {size}")
    return OnDemand(partial(_held_out, sample, key, size))


def _held_out(sample: Sample, key: tuple[Any, ...], size: int) -> Iterator[Problem]:
    rng = random.Random(seed_of(*key, "test"))
    distinct: set[str] = set()
    for _ in range(TRIES_PER_PROBLEM * size):
        if held_out(problem := sample(rng)) and problem.key not in distinct:
            distinct.add(problem.key)
            yield problem
        if len(distinct) == size:
            return


def changed(problems: Sequence[Problem], change: Callable[[Problem], Problem]) -> OnDemand:
    """A list of problems with each of them changed, when it is asked for."""
    return OnDemand(partial(map, change, problems))


class OnDemand(Sequence[Problem]):
    """A finite list of problems, made in order, as far as they are asked for, and then kept.

    make: begins the list anew, always the same. How many there are is known once all are made, so `len` makes them all; a slice
    from the start makes no more than it holds. Equal to any sequence of equal problems. Only `make` is pickled.
    """

    def __init__(self, make: Callable[[], Iterator[Problem]]) -> None:
        self.make = make
        self._made: list[Problem] = []
        self._rest: Iterator[Problem] | None = None

    def _up_to(self, n: int | None) -> list[Problem]:
        """What is made, after at least the first n problems are; None: all."""
        if self._rest is None:
            self._rest = self.make()
        self._made += islice(self._rest, None if n is None else max(0, n - len(self._made)))
        return self._made

    def __len__(self) -> int:
        return len(self._up_to(None))

    def __bool__(self) -> bool:
        return bool(self._up_to(1))

    @overload
    def __getitem__(self, at: int) -> Problem: ...
    @overload
    def __getitem__(self, at: slice) -> list[Problem]: ...
    def __getitem__(self, at: int | slice) -> Problem | list[Problem]:
        if isinstance(at, int):
            return self._up_to(at + 1 if at >= 0 else None)[at]
        # what counts from the end, or has none, or goes backwards, needs them all
        ends = at.start, at.stop
        known = at.stop is not None and (at.step or 1) > 0 and all(end is None or end >= 0 for end in ends)
        return self._up_to(at.stop if known else None)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OnDemand({len(self._made)} problems made so far)"

    def __reduce__(self) -> tuple[Any, ...]:
        return OnDemand, (self.make,)


@dataclass(frozen=True)
class Listed:
    """An endless source over a finite list: every epoch holds each problem once, in the order of the list."""

    problems: Sequence[Problem]

    def __len__(self) -> int:
        """Problems in an epoch."""
        return len(self.problems)

    def __getitem__(self, position: int) -> Problem:
        if not self.problems:
            raise RewardlabError("this task has no problems to train on: measure on it alone")
        return self.problems[_natural(position) % len(self.problems)]


@dataclass(frozen=True)
class Shuffled(Listed):
    """An endless source over a finite list: every epoch holds each problem once, in a new order."""

    seed: int = 0
    _orders: dict[int, list[int]] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, position: int) -> Problem:
        epoch, place = divmod(_natural(position), len(self.problems))
        return self.problems[self._order(epoch)[place]]

    def _order(self, epoch: int) -> list[int]:
        if epoch not in self._orders:
            order = list(range(len(self.problems)))
            random.Random(seed_of("shuffle", self.seed, epoch)).shuffle(order)
            # training reads positions in order, so only the current epoch's order is kept
            self._orders.clear()
            self._orders[epoch] = order
        return self._orders[epoch]


def data_file(*parts: str) -> Path:
    """A file of the shared data: in $REWARDLAB_DATA, else in shared/data beside the current folder or the project."""
    from_env = os.environ.get("REWARDLAB_DATA")
    starts = (Path.cwd(), Path(__file__).resolve().parents[3])
    roots = [Path(from_env)] if from_env else [root.parent / "shared" / "data" for root in starts]
    for root in roots:
        if (path := root.joinpath(*parts)).is_file():
            return path
    tried = ", ".join(str(root) for root in dict.fromkeys(roots))
    raise RewardlabError(
        f"the data file {'/'.join(parts)} is missing (looked in {tried}); set REWARDLAB_DATA to the folder that holds {parts[0]}/"
    )


def _natural(position: int) -> int:
    if position < 0:
        raise IndexError(f"a source has no position {position}: positions count from 0")
    return position
