"""Trees of partial solutions: each turn after the prompt is one step, and `path` holds the child taken at each step.

Rows whose paths begin alike share those steps; the node that a step leads to is the path up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from rewardlab.core import RewardlabError, Trajectory

Path = tuple[int, ...]


def spans(row: Trajectory) -> list[tuple[Path, int, int]]:
    """(node, start, end) of each step of a row, in token positions. Raises RewardlabError for rows of no tree."""
    if len(row.turns) != len(row.path) + 1:
        raise RewardlabError(f"a row with {len(row.turns)} turns and the path {row.path} comes from no tree: use a tree rollout")
    ends = accumulate(len(turn.ids) for turn in row.turns)
    return [(row.path[:k], start, end) for k, (start, end) in enumerate(pairwise(ends), 1)]


def shares(rows: Sequence[Trajectory], group: Sequence[int], kept: Sequence[bool], width: int) -> np.ndarray:
    """(B, width) one over the number of kept rows that hold a position's step; 0 off the kept rows' steps.

    Summed over rows, every step of a tree counts once, however many leaves are below it.
    """
    table = np.zeros((len(rows), width), np.float32)
    steps = {i: [((group[i], node), a, b) for node, a, b in spans(rows[i])] for i in range(len(rows)) if kept[i]}
    holders = Counter(node for found in steps.values() for node, _, _ in found)
    for i, found in steps.items():
        for node, a, b in found:
            table[i, a:b] = 1 / holders[node]
    return table


def quality(leaves: Sequence[Path], right: Sequence[bool]) -> dict[Path, float]:
    """How far every step of one tree has come towards a right answer, in [0, 1]; empty where no leaf is right.

        v_k = max(v_{k-1} + (1 - v_{k-1}) (1 - 2 r_k) / (m_k + 1), 0),   v_0 = 0

    r_k: 0 where a right leaf lies below the step, else 1.  m_k: the least number of steps from there to a right leaf; after a
    wrong step, as many as there were before it. Zhang et al. 2024, arXiv:2406.03816; m_k of wrong steps as in its code.
    """
    left: dict[Path, int] = {}
    for leaf in (leaf for leaf, ok in zip(leaves, right, strict=True) if ok):
        for k in range(len(leaf) + 1):
            left[leaf[:k]] = min(left.get(leaf[:k], len(leaf)), len(leaf) - k)
    if not left:
        return {}
    found: dict[Path, float] = {(): 0.0}
    for leaf in leaves:
        for k in range(1, len(leaf) + 1):
            before, good = found[leaf[: k - 1]], leaf[:k] in left
            distance = next(left[leaf[:j]] for j in range(k, -1, -1) if leaf[:j] in left)
            found[leaf[:k]] = max(0.0, before + (1 - before) * (1 if good else -1) / (distance + 1))
    return found
