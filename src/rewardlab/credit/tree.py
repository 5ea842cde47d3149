"""Credit in search trees, from the positions of the right leaves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit

Node = tuple[int, ...]
"""A step of a tree, as the child numbers on the path from the root to it."""


@credit
def step_quality(a: Tensor, batch: Batch, run: Run, *, right: float = 0.5) -> Tensor:
    """The progress of each step towards a right answer (`quality`), at the step's last token; 0 elsewhere.

    right: a row is right if its reward is above this.
    """
    good, table = (a.sum(1) > right).tolist(), torch.zeros_like(a)
    rows = [t for t, _ in batch.rows]
    for g in range(batch.groups):
        members = (batch.group == g).nonzero().squeeze(1).tolist()
        # a step that several rows share has one quality, from all leaves of the tree
        value = quality([rows[i].path for i in members], [good[i] for i in members])
        for i in members:
            for node, _, end in rows[i].spans:
                table[i, end - 1] = value.get(node, 0.0)
    return table


@credit
def right_below(a: Tensor, batch: Batch, run: Run, *, right: float = 0.5) -> Tensor:
    """The share of right rows among the rows of a tree that share a step, at the step's last token; 0 elsewhere.

    right: a row is right if its reward is above this. The value that a search by sampled replies gives a step: Jiang et al. 2025,
    arXiv:2501.12051.
    """
    good, table = (a.sum(1) > right).tolist(), torch.zeros_like(a)
    rows, group = [t for t, _ in batch.rows], batch.group.tolist()
    below: dict[tuple[int, Node], list[bool]] = {}
    for i, t in enumerate(rows):
        for node, _, _ in t.spans:
            below.setdefault((group[i], node), []).append(good[i])
    for i, t in enumerate(rows):
        for node, _, end in t.spans:
            known = below[group[i], node]
            table[i, end - 1] = sum(known) / len(known)
    return table


def quality(leaves: Sequence[Node], right: Sequence[bool]) -> dict[Node, float]:
    """The progress of every step of one tree towards a right answer, in [0, 1]; empty where no leaf is right.

        v_k = max(v_{k-1} + (1 - v_{k-1}) (1 - 2 r_k) / (m_k + 1), 0),   v_0 = 0

    r_k: 0 where a right leaf lies below the step, else 1.  m_k: the least number of steps from there to a right leaf; for a
    wrong step, that number at its nearest ancestor with a right leaf below it, as in the authors' code. Zhang et al. 2024,
    arXiv:2406.03816
    """
    # steps from each node to the nearest right leaf below it; nodes without one are absent
    left: dict[Node, int] = {}
    for leaf in (leaf for leaf, ok in zip(leaves, right, strict=True) if ok):
        for k in range(len(leaf) + 1):
            left[leaf[:k]] = min(left.get(leaf[:k], len(leaf)), len(leaf) - k)
    if not left:
        return {}
    values: dict[Node, float] = {(): 0.0}
    for leaf in leaves:
        for k in range(1, len(leaf) + 1):
            before, good = values[leaf[: k - 1]], leaf[:k] in left
            # the node itself if it is right, else its nearest right ancestor; the root is always right here
            distance = next(left[leaf[:j]] for j in range(k, -1, -1) if leaf[:j] in left)
            values[leaf[:k]] = max(0.0, before + (1 - before) * (1 if good else -1) / (distance + 1))
    return values
