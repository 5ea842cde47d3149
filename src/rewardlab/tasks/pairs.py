"""Pairs of replies with a preference: which one is labelled better, and annotator noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewardlab.core import Problem, ProblemSource, seed_of

from .sources import OnDemand, changed


@dataclass(frozen=True)
class Reply:
    """A reply and its latent quality; liked: what an annotator values besides, in the same unit."""

    text: str
    quality: float
    liked: float = 0.0


@dataclass(frozen=True)
class Annotator:
    """Who labels pairs.

    flip: share of labels that are turned round.  noise: the annotator prefers by chance, with log-odds of the difference in
    quality divided by this (Bradley-Terry); 0: always the better one.
    """

    flip: float = 0.0
    noise: float = 0.0

    def label(self, problem: Problem, a: Reply, b: Reply, rng: random.Random) -> Problem:
        """The problem with the pair in its meta: `chosen`, `rejected`, and the true quality of both."""
        better_by = a.quality + a.liked - b.quality - b.liked
        prefers_a = rng.random() < _sigmoid(better_by / self.noise) if self.noise else better_by > 0
        # sampled whatever the share, so that a higher share only turns more of the same labels
        if rng.random() < self.flip:
            prefers_a = not prefers_a
        chosen, rejected = (a, b) if prefers_a else (b, a)
        return with_pair(problem, chosen, rejected)


def with_pair(problem: Problem, chosen: Reply, rejected: Reply, **more: Any) -> Problem:
    """The problem with this pair in its meta."""
    pair = {"chosen": chosen.text, "rejected": rejected.text, "qualities": [chosen.quality, rejected.quality]}
    return replace(problem, meta={**problem.meta, **pair, **more})


@dataclass(frozen=True)
class Paired:
    """Another source of problems, each with a pair of replies in its meta: always the same one for a problem."""

    source: ProblemSource
    pair: Callable[[Problem, random.Random], Problem]

    def __len__(self) -> int:
        """Problems in an epoch; an endless source has no length."""
        return len(self.source)  # type: ignore[arg-type]

    def __getitem__(self, position: int) -> Problem:
        return paired(self.source[position], self.pair)


def paired(problem: Problem, pair: Callable[[Problem, random.Random], Problem]) -> Problem:
    """The problem with its pair, which depends on the problem alone: it is the same in every epoch."""
    return pair(problem, random.Random(seed_of("preferences", problem.key)))


def all_paired(problems: Sequence[Problem], pair: Callable[[Problem, random.Random], Problem]) -> OnDemand:
    """Held-out problems with their pairs, which are made when they are asked for."""
    return changed(problems, partial(paired, pair=pair))


def _sigmoid(x: float) -> float:
    # clipped, since exp overflows beyond 700
    return 1 / (1 + math.exp(-min(max(x, -500.0), 500.0)))
