"""Monte-Carlo tree search with any reward as the value of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, marked, started, to_the_end, worths
from rewardlab.rollouts.tree import Node, descend, followed
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt


@dataclass
class Tree:
    """A search tree, and the replies that were sampled to the end from its nodes to value them."""

    root: Node
    simulated: Group = field(default_factory=list)

    @property
    def leaves(self) -> list[Node]:
        return list(self.root.leaves())

    @property
    def exhausted(self) -> bool:
        return all(leaf.ended for leaf in self.leaves)


# each expansion replaces one leaf by at most `branch` leaves
@rollout(rows=lambda iterations, branch, **_: 1 + iterations * (branch - 1))
def monte_carlo_tree(
    problems: list[Problem], run: Run, *, score: Reward, iterations: PositiveInt = 8, branch: PositiveInt = 3,
    explore: NonNegativeFloat = 0.5, rule: Literal["uct", "puct"] = "uct", simulate: bool = False,
    temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """The finished replies of a search tree for each problem. Each iteration selects a leaf, backs up its value, and expands it.

    rule: by which children are chosen: uct, value + explore sqrt(2 ln N / n), those never visited first; or puct, value +
    explore p sqrt(N) / (1 + n), p in proportion to exp(mean log-prob of the child's step). A value is the mean over the visits of
    a node and those below it; `explore` is meant for scores from 0 to 1. simulate: the value of a leaf is the score of a reply that
    is sampled to the end from it, which is then one of the replies, and not the score of the leaf. Where a tree completes no reply,
    it goes on from its best leaf, of `branch` steps always to the best, until that ends. step_tokens: most tokens of a step (None:
    of a reply).  stop: the texts that end a step.  Logged: unfinished, the share of such trees, with too few iterations for
    replies of so many steps.

    Kocsis and Szepesvari 2006 (UCT); Silver et al. 2017, arXiv:1712.01815 (PUCT). Unlike `tree_search`, it needs no value head.
    """
    how = Stepping(step_tokens, temperature, tuple(stop))
    trees = [Tree(Node(t)) for t in started(problems, run)]
    for _ in range(iterations):
        live = [tree for tree in trees if not tree.exhausted]
        leaves = [descend(tree.root, explore) if rule == "uct" else _by_prior(tree.root, explore) for tree in live]
        for leaf in leaves:
            back_up(leaf)
        # an ended leaf cannot be expanded, but its visit counts
        open_ = [(tree, leaf) for tree, leaf in zip(live, leaves, strict=True) if not leaf.ended]
        _expand([leaf for _, leaf in open_], branch, how, run)
        _value(open_, branch if simulate else None, temperature, score, run)
    return _complete(trees, branch, how, score, run)


def back_up(leaf: Node) -> None:
    """Count a visit of a leaf and of all nodes above it, and move their values towards its own, if it has a verdict."""
    value, node = leaf.value, leaf
    while True:
        node.visits += 1
        if value != UNSURE and node.parent is not None:
            node.value = value if node.value == UNSURE else node.value + (value - node.value) / node.visits
        if node.parent is None:
            return
        node = node.parent


def _by_prior(node: Node, explore: float) -> Node:
    """The leaf to expand next, by PUCT."""
    while node.children:
        # the probabilities of steps of unlike length compare by their means per token
        priors = [math.exp(_mean_logprob(child.row)) for child in node.children]
        bonus = explore * math.sqrt(node.visits) / math.fsum(priors)
        node = max(zip(node.children, priors, strict=True), key=lambda c: c[0].value + bonus * c[1] / (1 + c[0].visits))[0]
    return node


def _mean_logprob(row: Trajectory) -> float:
    return float(np.mean(row.turns[-1].logprobs, dtype=np.float64))  # type: ignore[arg-type]  # sampled turns have them


def _expand(leaves: Sequence[Node], branch: int, how: Stepping, run: Run) -> None:
    """Give each leaf its children: different next steps. Equal ones are one child."""
    sampled = grown([leaf.row for leaf in leaves for _ in range(branch)], [*range(branch)] * len(leaves), how, run)
    for i, leaf in enumerate(leaves):
        different: dict[tuple[str, str | None], Trajectory] = {}
        for t in sampled[i * branch : (i + 1) * branch]:
            different.setdefault((t.turns[-1].text, t.stop), t)
        leaf.children = [Node(t, leaf) for t in different.values()]


def _value(expanded: Sequence[tuple[Tree, Node]], simulated: int | None, temperature: float, score: Reward, run: Run) -> None:
    """Value all new children: by themselves, or by replies sampled from them to the end, as their children `simulated`."""
    groups = [[child.row for child in leaf.children] for _, leaf in expanded]
    if simulated is not None:
        ends = iter(to_the_end([t for group in groups for t in group], simulated, temperature, run))
        full = [[next(ends) for _ in group] for group in groups]
        for (tree, _), group, rows in zip(expanded, full, groups, strict=True):
            # a child that has ended is a leaf of the tree, and listed there
            tree.simulated += [t for t, child in zip(group, rows, strict=True) if child.stop is None]
        groups = full
    for (_, leaf), known in zip(expanded, worths(groups, score, run), strict=True):
        for child, value in zip(leaf.children, known, strict=True):
            child.value = value


def _complete(trees: Sequence[Tree], branch: int, how: Stepping, score: Reward, run: Run) -> list[Group]:
    """The complete replies of each tree; where there is none, it is searched on from its best leaf until there is."""

    def expand(nodes: list[Node]) -> None:
        _expand(nodes, branch, how, run)
        # without simulation, values go to the nodes alone
        _value([(Tree(node), node) for node in nodes], None, how.temperature, score, run)

    rest = iter(followed([tree.root for tree in trees if not tree.simulated], expand, run))
    return [
        marked([*(leaf.row for leaf in tree.leaves if leaf.ended), *tree.simulated] if tree.simulated else next(rest), run)
        for tree in trees
    ]
