"""Penalties for repetition."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rewardlab.core import Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.words import ngrams, words_and_signs


@reward
def repetition(trajectory: Trajectory, *, n: PositiveInt = 5, often: PositiveInt = 5) -> float:
    """Minus the share of a reply in n-grams of sampled tokens that occur more than `often` times; 0 where there are none.

    -max(different n-grams written more than `often` times / all n-grams, times of the most frequent / (tokens / n))

    Abdin et al. 2025, arXiv:2504.21318, section 4.1
    """
    return -repeated(trajectory.ids[trajectory.mask], n, often)


@reward
def distinct_ngrams(trajectory: Trajectory, *, n: PositiveInt = 3) -> float:
    """The share of distinct n-grams of words and signs: 1 without repetition, or without any n-gram."""
    counts = ngrams(words_and_signs(trajectory.reply), n)
    return len(counts) / counts.total() if counts else 1.0


def repeated(ids: np.ndarray, n: int = 5, often: int = 5) -> float:
    """How much of these tokens is n-grams that occur more than `often` times; 0 if none does, n for one token over and over."""
    tokens = ids.tolist()
    counts = Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
    frequent = [count for count in counts.values() if count > often]
    if not frequent:
        return 0.0
    return max(len(frequent) / counts.total(), max(frequent) * n / len(tokens))
