"""A small graph network that says whether a subgraph belongs together, and rewards for growing one node by node.

h_v = relu(W1 [x_v, mean of x over v's neighbours in the subgraph]);   g_v = relu(W2 [h_v, mean of h over them])
p(G) = sigmoid(w . mean of g_v over the subgraph + b)
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Group, Run, Score, Scores, Trajectory, seed_of
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.util.ranking import auc_of

from .monte_carlo import rows_in_steps
from .reward import reward
from .steps import step_texts

MEMORY, AUC = "subgraphs.model", "subgraphs.auc"
"""The keys of `run.memory` that hold the weights, as nested lists, and how well they tell."""
EXAMPLES = "examples"
"""The key that holds the columns of problems to learn from (`rollouts/examples.py`)."""
HIDDEN = 16


@dataclass(frozen=True)
class Graph:
    """features: of each node, a list of numbers.  near: its neighbours.  seed: where growth begins.  module: None where unknown."""

    features: Mapping[str, Sequence[float]]
    near: Mapping[str, frozenset[str]]
    seed: str
    module: frozenset[str] | None

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Graph | None:
        """From the columns of a problem; None where they hold no graph."""
        if not {"nodes", "edges", "seed"} <= meta.keys() or meta["seed"] not in meta["nodes"]:
            return None
        near: dict[str, set[str]] = {x: set() for x in meta["nodes"]}
        for a, b in meta["edges"]:
            near[a].add(b)
            near[b].add(a)
        module = frozenset(meta["module"]) if meta.get("module") else None
        return cls(meta["nodes"], {x: frozenset(y) for x, y in near.items()}, meta["seed"], module)

    def around(self, nodes: Sequence[str]) -> list[str]:
        """The nodes that are joined to one of these, in their order, without these."""
        return [x for x in self.features if x not in nodes and self.near[x] & set(nodes)]

    def grown(self, size: int, rng: random.Random, within: frozenset[str] | None = None) -> list[str]:
        """The seed, and at random so many nodes that are each joined to one before it; fewer, where there are no more."""
        nodes = [self.seed]
        while len(nodes) < size and (ahead := [x for x in self.around(nodes) if within is None or x in within]):
            nodes.append(rng.choice(ahead))
        return nodes


def logits(weights: Sequence[Tensor], graph: Graph, subsets: Sequence[Sequence[str]]) -> Tensor:
    """(n,) the log-odds that each subset of the nodes belongs together."""
    w1, w2, w, b = weights
    width = max(map(len, subsets))
    x = torch.zeros(len(subsets), width, len(next(iter(graph.features.values()))))
    edge, there = torch.zeros(len(subsets), width, width), torch.zeros(len(subsets), width, 1)
    for i, nodes in enumerate(subsets):
        x[i, : len(nodes)] = torch.tensor([list(graph.features[v]) for v in nodes])
        edge[i, : len(nodes), : len(nodes)] = torch.tensor([[float(u in graph.near[v]) for u in nodes] for v in nodes])
        there[i, : len(nodes)] = 1.0
    mean = edge / edge.sum(2, keepdim=True).clamp(min=1)
    h = F.relu(torch.cat((x, mean @ x, there), 2) @ w1) * there
    g = F.relu(torch.cat((h, mean @ h, there), 2) @ w2) * there
    return (g.sum(1) / there.sum(1)) @ w + b


def learnt(graphs: Sequence[Graph], seed: int, steps: int, lr: float = 0.02) -> tuple[list[Tensor], float]:
    """Weights that tell subgraphs within modules from others that grew from the same seeds, and their AUC on the last eighth."""
    rng, generator = random.Random(seed_of("subgraphs", seed)), torch.Generator().manual_seed(seed)
    features = len(next(iter(graphs[0].features.values())))
    shapes = ((2 * features + 1, HIDDEN), (2 * HIDDEN + 1, HIDDEN), (HIDDEN,), ())
    weights = [(torch.randn(shape, generator=generator) * (0.5 if shape else 0.0)).requires_grad_() for shape in shapes]
    optimizer, kept = torch.optim.Adam(weights, lr=lr), max(1, len(graphs) - max(1, len(graphs) // 8))
    for _ in range(steps):
        graph = rng.choice(graphs[:kept])
        subsets, labels = _examples(graph, rng)
        loss = F.binary_cross_entropy_with_logits(logits(weights, graph, subsets), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found: list[tuple[float, bool]] = []
    with torch.no_grad():
        for graph in graphs[kept:] or graphs:
            subsets, labels = _examples(graph, rng)
            found += zip(logits(weights, graph, subsets).tolist(), (x > 0.5 for x in labels), strict=True)
    return [w.detach() for w in weights], auc_of(found)


def _examples(graph: Graph, rng: random.Random, each: int = 4) -> tuple[list[list[str]], list[float]]:
    """Subgraphs within the module, and others of the same sizes that may leave it."""
    module = graph.module or frozenset()
    subsets, labels = [], []
    for _ in range(each):
        size = rng.randint(2, max(2, len(module)))
        for within in (module, None):
            nodes = graph.grown(size, rng, within)
            subsets.append(nodes)
            labels.append(float(set(nodes) <= module))
    return subsets, labels


def weights_in(groups: list[Group], run: Run, steps: int) -> list[Tensor]:
    """The weights in the run's memory; at first they are learnt, from the problems there, and those of these groups."""
    if MEMORY not in run.memory:
        problems = [group[0].problem for group in groups if group]
        known = [g for meta in (*run.memory.get(EXAMPLES, ()), *(p.meta for p in problems)) if (g := Graph.of(meta)) and g.module]
        if not known:
            raise RewardlabError("no problem has a graph (nodes, edges, seed) with a known module to learn from")
        weights, auc = learnt(known, run.seed, steps)
        run.memory[MEMORY], run.memory[AUC] = [w.tolist() for w in weights], auc
    run.log("graph_auc", run.memory[AUC])
    return [torch.tensor(w) for w in run.memory[MEMORY]]


@reward(over="groups")
def grown_subgraph(
    groups: list[Group], run: Run, *, ahead: NonNegativeFloat = 1.0, invalid: NonNegativeFloat = 1.0, learning: PositiveInt = 300
) -> Scores:
    """At the end of each line, which names a node: R = [p(G) - 1/2] + ahead mean over u [p(G + u) - 1/2] - invalid [no neighbour].

    G: the seed and the nodes that were kept before, with this one; u: the nodes joined to it, G itself where there are none. A node
    is kept if its R is above 0. A node that is unknown, there already, or not joined to G is invalid, and p is that of what was
    there. p is a network's, which is learnt once, at the first call, for so many steps (`learning`): from the problems of the
    step with the column `module`, and those that `with_examples` has remembered. Logged: graph_auc, on graphs that it has not seen.
    No verdict where the problem has no graph (columns nodes, edges, seed).  Zhang et al. 2025, arXiv:2509.20935
    """
    rows = rows_in_steps(groups, "grown_subgraph")
    weights = weights_in(groups, run, learning)
    scores = iter([_score(t, weights, ahead, invalid) for t in rows])
    return [[next(scores) for _ in group] for group in groups]


def _score(t: Trajectory, weights: Sequence[Tensor], ahead: float, invalid: float) -> Score:
    graph, lines = Graph.of(t.problem.meta), step_texts(t, "newline")
    if graph is None or len(lines) != len(t.steps):
        return Score(None, why="the problem has no graph, or text and tokens disagree")
    kept, steps = [graph.seed], list[tuple[int, float]]()
    for at, line in zip(t.steps, lines, strict=True):
        valid = line.strip() in graph.around(kept)
        nodes = [*kept, line.strip()] if valid else kept
        worth = step_worth(chances(weights, graph, nodes), ahead) - invalid * (not valid)
        steps.append((at, worth))
        kept = nodes if worth > 0 else kept
    return Score(steps=steps, why=f"kept {' '.join(kept)}")


def chances(weights: Sequence[Tensor], graph: Graph, nodes: Sequence[str]) -> list[float]:
    """p of these nodes, and of them with each node around them."""
    subsets: list[Any] = [list(nodes), *([*nodes, u] for u in graph.around(nodes))]
    with torch.no_grad():
        return logits(weights, graph, subsets).sigmoid().tolist()


def step_worth(p: Sequence[float], ahead: float) -> float:
    """[p(G) - 1/2] + ahead mean over u of [p(G + u) - 1/2], from p(G) and the p(G + u)."""
    further = p[1:] or p[:1]
    return p[0] - 0.5 + ahead * (sum(further) / len(further) - 0.5)
