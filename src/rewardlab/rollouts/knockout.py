"""Tournaments: replies are compared in pairs, and the winners meet again, until one is left."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from rewardlab.core import Group, Problem, Trajectory

Pair = tuple[Problem, str, str]
Compare = Callable[[Sequence[Pair]], Sequence[float]]
"""From pairs of replies to the preference for the first of each, from 0 to 1; 1/2 is a tie."""


def knocked_out(group: Group, compare: Compare, rng: random.Random) -> Trajectory:
    """The reply that wins a knockout of the group: N - 1 comparisons of N replies.

    Pairs are random, and so is who wins a tie. A reply without an opponent goes on to the next round, and plays first in it.
    """
    left = rng.sample(group, len(group))
    while len(left) > 1:
        matches = list(zip(left[::2], left[1::2], strict=False))
        shares = compare([(a.problem, a.reply, b.reply) for a, b in matches])
        lots = [share if share != 0.5 else rng.random() for share in shares]
        won = [a if lot > 0.5 else b for (a, b), lot in zip(matches, lots, strict=True)]
        left = left[2 * len(matches) :] + won
    return left[0]
