"""The worth of steps by the replies that share them: a search tree, or samples of one problem, read as a tree."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, uniform_of
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.reward import reward


@reward(over="groups")
def compressed_shares(groups: list[Group], run: Run, *, compress: Share = 0.5, children: PositiveInt = 4) -> Scores:
    """At the end of each step, the share of right replies among those of the group that begin so: its node in the search tree.

    Hierarchical node compression: a node with so many `children` or more gives its own parent the first for which a coin says so,
    with chance `compress`, and its share is that of the others. No verdict on a reply without one.
    Wang et al. 2025, arXiv:2503.13551
    """
    rows_in_steps(groups, "compressed_shares")
    return [_shares(group, row, run, compress, children) for group, row in zip(groups, run.verdicts(groups), strict=True)]


def _shares(group: Group, ended: list[Score], run: Run, compress: float, children: int) -> list[Score]:
    nodes = [[t.ids[: at + 1].tobytes() for at in t.steps] for t in group]
    known = [(row, s.value >= 1.0) for row, s in zip(nodes, ended, strict=True) if s.value is not None]
    below: dict[bytes, list[tuple[bytes | None, bool]]] = {}
    for row, right in known:
        for node, child in zip(row, [*row[1:], None], strict=True):
            below.setdefault(node, []).append((child, right))
    shares = {}
    for node, found in below.items():
        kinds = list(dict.fromkeys(child for child, _ in found))
        coins = (c for c in kinds if c and len(kinds) >= children and uniform_of("hnc", run.seed, run.moment, c) < compress)
        lost = next(coins, b"")
        shares[node] = float(np.mean([right for child, right in found if child != lost]))
    return [
        Score(None, why="the reply has no verdict") if s.value is None
        else Score(steps=[(at, shares[node]) for at, node in zip(t.steps, row, strict=True)])
        for t, row, s in zip(group, nodes, ended, strict=True)
    ]  # fmt: skip
