"""Errors of simulated judges: correlated along a reply, independent between replies.

    z_0 = e_0,    z_k = sqrt(1 - fresh) z_{k-1} + sqrt(fresh) e_k,    e_k ~ N(0, 1) from a hash of the reply up to its step k

A reply has one draw, told by its first word, and a small one at each step, a share `fresh` of the variance. Every z is N(0, 1),
and those of two beginnings of a reply that are d steps apart correlate by (1 - fresh)^(d / 2): who reads more of a reply gets the
same error again, as from a trained model. Drawn anew for each beginning, they would be averaged away by all that reads many.
Replies that begin alike share the draws of what they have in common.

Right and wrong ones (part of the key) have errors of their own. If they shared them, a fall of the score from one beginning to the
next, or between two replies with a common beginning, would give away the first mistake whatever the judge's quality.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from statistics import NormalDist

from rewardlab.core import Trajectory, uniform_of

NORMAL = NormalDist()
FRESH = 0.2


def errors(key: tuple[Hashable, ...], beginnings: Sequence[Hashable], fresh: float = FRESH) -> list[float]:
    """z after each beginning of a reply, from the shortest one to the longest.  key: whose errors they are, and about what."""
    found: list[float] = []
    for k, beginning in enumerate(beginnings):
        own = NORMAL.inv_cdf(uniform_of(*key, k, beginning))
        found.append(math.sqrt(1 - fresh) * found[-1] + math.sqrt(fresh) * own if k else own)
    return found


def error_of(key: tuple[Hashable, ...], t: Trajectory, fresh: float = FRESH) -> float:
    """z after all that is written of a reply, whose steps are its lines; a multi-turn one's are the lines of all its replies."""
    text = "\n".join(t.replies)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = re.match(r"\W*\w+", text)
    beginnings = [first.group().strip() if first else "", *("\n".join(lines[: i + 1]) for i in range(len(lines)))]
    return errors((*key, t.problem.key), beginnings, fresh)[-1]


def step_errors(key: tuple[Hashable, ...], t: Trajectory, ends: Sequence[int], fresh: float = FRESH) -> list[float]:
    """z at each step of a reply, which ends at these positions."""
    return errors((*key, t.problem.key), [t.ids[: at + 1].tobytes() for at in ends], fresh)


def quantile(z: float) -> float:
    """From 0 to 1: an error as a uniform number, to be compared with a rate."""
    return NORMAL.cdf(z)
