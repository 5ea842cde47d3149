"""What the best of n replies by a reward is worth, as n grows: how hard a reward can be pressed before it misleads.

Taking the best of n moves away from the policy by log n - (n - 1) / n nats of KL, whatever the reward (Stiennon et al. 2020,
arXiv:2009.01325). Where the reward goes on rising and the worth falls, it is over-optimised (Gao et al. 2022, arXiv:2210.10760).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def best_at(k: int, paid: Sequence[float | None], worth: Sequence[float]) -> float:
    """The mean worth of the reply that is paid most among k, over all choices of k of these n >= k replies to a problem.

    Replies that are paid alike are taken with equal chances; None, without a score, is paid less than all others.
    Gao et al. 2022, arXiv:2210.10760, equation 1 of appendix I.
    """
    n = len(paid)
    if not 1 <= k <= n:
        raise ValueError(f"the best of {k} replies is not found among {n}")
    values = np.array([-np.inf if x is None else x for x in paid], float)
    kinds, kind = np.unique(values, return_inverse=True)
    counts = np.bincount(kind, minlength=len(kinds))
    means = np.bincount(kind, weights=np.asarray(worth, float), minlength=len(kinds)) / counts
    below = np.concatenate(([0], np.cumsum(counts)))
    # the chance that all k are of the lowest kinds, as logarithms: binomials of hundreds overflow
    within = np.array([math.exp(_log_choose(int(m), k) - _log_choose(n, k)) if m >= k else 0.0 for m in below])
    return float(np.diff(within) @ means)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def kl_of_best(n: int) -> float:
    """KL(best of n || policy) in nats, at most: exact where no two replies are paid alike."""
    return math.log(n) - (n - 1) / n
