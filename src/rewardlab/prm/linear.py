"""A linear scorer of steps, which learns in a second: for studies of how scorers are trained, where a network would take minutes.

    chance = sigmoid(w . phi + b),   phi: words of the step, its neighbouring words, its pairs of words, and for each of its numbers
                                     whether it is new, stood in the text before, or was the last one there

All hashed to SIZE places, numbers as one word. The weights are those of logistic regression with an L2 penalty, by Adam on the
whole batch. A row may be the features of several steps together: their sum scores a solution as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from zlib import crc32

import numpy as np

SIZE = 1 << 12
_WORD = re.compile(r"[a-z_]+|-?\d+(?:\.\d+)?|[^\s\w]")
NUMBER = "#"


def features(before: str, step: str) -> np.ndarray:
    """(k,) places of a step's features, where `before` is the question with the steps before it."""
    known = [w for w in _words(before) if _is_number(w)]
    words = _words(step)
    names = [NUMBER if _is_number(w) else w for w in words]
    found = {*names, *map(" ".join, pairwise(names)), *(f"{a}&{b}" for a, b in combinations(names, 2))}
    found |= {f"{NUMBER}{_place(w, known)}" for w in words if _is_number(w)}
    return np.array(sorted({crc32(name.encode()) % SIZE for name in found}), int)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _is_number(word: str) -> bool:
    return word[-1].isdigit()


def _place(number: str, known: Sequence[str]) -> str:
    return "new" if number not in known else "last" if number == known[-1] else "before"


def of_steps(question: str, steps: Sequence[str]) -> list[np.ndarray]:
    """The features of each step of a solution."""
    return [features("\n".join((question, *steps[:k])), step) for k, step in enumerate(steps)]


def dense(rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """(n, SIZE): each row the sum of the features of its steps."""
    table = np.zeros((len(rows), SIZE), np.float32)
    for out, row in zip(table, rows, strict=True):
        for places in row:
            out[places] += 1
    return table


class LinearScorer:
    """weights: (SIZE,), bias: of the log-odds that a row is right."""

    def __init__(self, weights: np.ndarray, bias: float):
        self.weights, self.bias = weights, bias

    @classmethod
    def fit(
        cls, rows: Sequence[Sequence[np.ndarray]], right: Sequence[float], *, l2: float = 1e-3, lr: float = 0.05, passes: int = 100
    ) -> LinearScorer:  # fmt: skip
        """Learn from rows of features and whether each is right, 1 or 0. Raises ValueError where there is nothing to tell apart."""
        y = np.asarray(right, np.float32)
        if len(rows) != len(y) or len(set(y.tolist())) < 2:
            raise ValueError(f"{len(rows)} rows with {len(y)} labels, {sorted(set(y.tolist()))}: it takes right and wrong ones")
        x = np.concatenate([dense(rows), np.ones((len(y), 1), np.float32)], 1)
        w: np.ndarray = np.zeros(SIZE + 1, np.float32)
        first, second = np.zeros_like(w), np.zeros_like(w)
        for step in range(1, passes + 1):
            slope = x.T @ (_sigmoid(x @ w) - y) / len(y)
            slope[:-1] += l2 * w[:-1]
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            w = w - lr * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        return cls(w[:-1], float(w[-1]))

    def chances(self, rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        """(n,) the chance that each row is right."""
        return _sigmoid(dense(rows) @ self.weights + self.bias)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))
