"""Search trees of reasoning steps, guided by a model that values partial solutions.

The trees of all problems grow together, one expansion per tree and iteration, so that one call of the policy serves all trees. The
rows of a group are the ended leaves of one tree; rows whose `path` begins with the same numbers share those steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.rollouts.stepwise import Stepping, grown, looked_ahead, started
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.util.outputs import last_values, values


@dataclass
class Node:
    """A partial solution: the row so far, its estimated value, and the number of visits by the search."""

    row: Trajectory
    parent: Node | None = None
    value: float = 0.0
    visits: int = 0
    children: list[Node] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.row.stop is not None

    def leaves(self) -> Iterator[Node]:
        """The nodes below this one, or itself, that have no children."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


# each expansion replaces one leaf by at most `branch` leaves
@rollout(rows=lambda iterations, branch, **_: 1 + iterations * (branch - 1))
def tree_search(
    problems: list[Problem], run: Run, *, value: str = "value", iterations: PositiveInt = 12, branch: PositiveInt = 3,
    explore: NonNegativeFloat = 0.4, ahead: NonNegativeInt = 2, blend: Share = 0.5, temperature: NonNegativeFloat = 1.0,
    step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """Monte-Carlo tree search over steps, guided by the value head of the model `value`.

    Each iteration walks down by value + explore sqrt(2 ln N / n) and samples `branch` next steps there (equal ones are one child).
    It samples `ahead` steps beyond the best of them, which are then discarded, and mixes the best value on them into its value by
    `blend`: that is its first visit. Then the value of every node on the way up becomes the mean of its children's, weighted by
    visits. If no leaf of a tree has ended, it goes on from its best one, as `followed` says. step_tokens: most tokens of a step
    (None: of a reply); what is longer goes on as a further step.  stop: the texts that end a step.  Logged: unfinished, the share
    of such trees.

    Zhang et al. 2024, arXiv:2406.03816, algorithm 2
    """
    how, judge = Stepping(step_tokens, temperature, tuple(stop)), run.model(value)
    roots = [Node(t) for t in started(problems, run)]
    for _ in range(iterations):
        chosen = [descend(root, explore) for root in roots]
        # an ended leaf cannot be expanded, but its visit still counts
        open_ = [node for node in chosen if not node.ended]
        expand(open_, branch, how, judge, run)
        if ahead:
            look_ahead([max(node.children, key=lambda c: c.value) for node in open_], ahead, how, blend, judge, run)
        for node in chosen:
            back_up(node)
    return followed(roots, lambda nodes: expand(nodes, branch, how, judge, run), run)


def followed(roots: Sequence[Node], expand: Callable[[list[Node]], None], run: Run) -> list[Group]:
    """The complete replies of each tree. One without any is searched on from its best leaf, always to the best of the next steps,
    until that ends: its replies are those among the last steps.

    expand: gives nodes their children, with their values. A tree of few visits is less deep than a long reply has lines; what is
    sampled to the end in one go would be no search.  Logged: unfinished, the share of trees without a reply.
    """
    found = [[leaf.row for leaf in root.leaves() if leaf.ended] for root in roots]
    at = {i: max(roots[i].leaves(), key=lambda leaf: leaf.value) for i, rows in enumerate(found) if not rows}
    run.log("unfinished", len(at) / max(1, len(roots)))
    while live := {i: node for i, node in at.items() if not node.ended}:
        expand([*live.values()])
        for i, node in live.items():
            at[i] = max(node.children, key=lambda child: child.value)
            found[i] = [child.row for child in node.children if child.ended]
    return found


def descend(node: Node, explore: float) -> Node:
    """The leaf to expand next. Children that were never visited come first, in the order of their values."""
    while node.children:
        # log N of the parent; max, because log(0) is undefined
        total = math.log(max(1, node.visits))
        node = max(
            node.children, key=lambda c: (c.visits == 0, c.value + (explore * math.sqrt(2 * total / c.visits) if c.visits else 0))
        )
    return node


def expand(nodes: list[Node], branch: int, how: Stepping, judge: Any, run: Run) -> None:
    """Give each node its children: different next steps, with their values."""
    sampled = grown([node.row for node in nodes for _ in range(branch)], [0] * (branch * len(nodes)), how, run)
    for i, node in enumerate(nodes):
        # equal steps become one child
        different = {(t.turns[-1].text, t.stop): t for t in sampled[i * branch : (i + 1) * branch]}
        node.children = [Node(replace(t, path=(*node.row.path, k)), node) for k, t in enumerate(different.values())]
    children = [child for node in nodes for child in node.children]
    for child, v in zip(children, last_values(judge, [child.row for child in children]), strict=True):
        child.value = v


def look_ahead(nodes: list[Node], steps: int, how: Stepping, blend: float, judge: Any, run: Run) -> None:
    """Mix into each node's value the best value at the ends of so many further steps, and count a visit of each."""
    for node in nodes:
        node.visits += 1
    # nothing follows an ended row
    nodes = [n for n in nodes if not n.ended]
    beyond = looked_ahead([n.row for n in nodes], steps, how, run, how.temperature)
    for node, row, v in zip(nodes, beyond, values(judge, beyond), strict=True):
        # values are read at the ends of steps, where the value head is trained
        best = max(float(v[end - 1]) for _, start, end in row.spans if start >= len(node.row))
        node.value = (1 - blend) * node.value + blend * best


def back_up(node: Node | None) -> None:
    """Count a visit of every node up to the root, and set its value to the mean of its children's, weighted by visits."""
    while node is not None:
        node.visits += 1
        visits = sum(c.visits for c in node.children)
        # a node that was expanded without a look ahead has children without visits, and keeps its own value
        if visits:
            node.value = sum(c.visits * c.value for c in node.children) / visits
        node = node.parent
