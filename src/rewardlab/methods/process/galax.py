"""GALAX: grow a subgraph node by node, and reward each node by a pretrained graph network's score of the subgraph.

    R_t = [p(G_t) - 1/C] + ahead mean over u [p(G_t + u) - 1/C] - invalid 1[the node is not joined to G];    kept if R_t > 0
    p: chance of the sample's class, of C, by a graph network that learnt, before, to tell samples of all classes from subgraphs
    policy: the tokens of node t get GRPO's advantage of the answer + weight (R_t + R_(t+1) + ..)

An answer at the end does not say which node led astray, and nobody labels the growth of subgraphs. A network that learnt from the
classes of samples knows which part of a graph makes a case of it, and no answers are needed for that.

Zhang et al. 2025, arXiv:2509.20935, and the released code (FuhaiLiAiLab/GALAX, b2472fd, motasg_explainer.py, RLGenExplainer): both
weights 1, validity 0 or -1, p less 1 / classes. There a walk has so many steps, each paid its own R_t; here the policy ends it. R_t
is not normalised with the answers, which would charge good nodes. There 5 samples of one more step stand for what may become of G,
here all neighbours; and p of an invalid step is that of G with it, here without. (inferred): the answer's weight.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Score, Scores, Trajectory, rollout, seed_of
from rewardlab.credit.terms import by_term
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, map_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import step_texts
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.named import added, visible
from rewardlab.util.ranking import auc_of

# ---- a small graph network that says from a subgraph what class a sample is of ---------------------------------------
# h_v = relu(W1 [x_v, mean of x over v's neighbours in the subgraph]);   g_v = relu(W2 [h_v, mean of h over them])
# p(class | G) = softmax(W . mean of g_v over the subgraph + b)

MEMORY, AUC, CLASSES, EXAMPLES = "subgraphs.model", "subgraphs.auc", "subgraphs.classes", "examples"
"""The keys of `run.memory` of the weights, as nested lists, how well they tell, the classes, and columns to learn from."""
HIDDEN, EACH = 16, 4  # width of the network, subgraphs of a sample in each step


@dataclass(frozen=True)
class Graph:
    """features: of each node, a list of numbers.  near: its neighbours.  seed: where growth begins.  label: the sample's class,
    None where unknown.  others: samples of other classes on the same graph, (label, features)."""

    features: Mapping[str, Sequence[float]]
    near: Mapping[str, frozenset[str]]
    seed: str
    label: str | None = None
    others: tuple[tuple[str, Mapping[str, Sequence[float]]], ...] = ()

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Graph | None:
        """From the columns of a problem; None where they hold no graph. Raises RewardlabError where they contradict each other."""
        nodes, edges = map_of(meta.get("nodes")), list_of(meta.get("edges"))
        if not nodes or edges is None or meta.get("seed") is None:
            return None
        features = _features(nodes, "nodes")
        if meta["seed"] not in features:
            raise RewardlabError(f"the seed {meta['seed']!r} of a graph is none of its nodes: {', '.join(list(features)[:8])} ...")
        near: dict[str, set[str]] = {x: set() for x in features}
        for edge in edges:
            if not isinstance(edge, list | tuple) or len(edge) != 2 or not all(isinstance(x, str) for x in edge):
                raise RewardlabError(f"the column edges holds {edge!r}, which is no pair of names")
            if unknown := [x for x in edge if x not in near]:
                raise RewardlabError(f"the edge {list(edge)} joins {unknown[0]!r}, which is none of its {len(near)} nodes")
            for a, b in (edge, edge[::-1]):
                near[a].add(b)
        label = None if meta.get("label") is None else str(meta["label"])
        return cls(features, {x: frozenset(y) for x, y in near.items()}, meta["seed"], label, _others(meta, features))

    def samples(self) -> list[tuple[str, Graph]]:
        """(label, graph) of all samples on this graph whose class is known."""
        own = [] if self.label is None else [(self.label, self)]
        return own + [(label, replace(self, features=x, label=label)) for label, x in self.others]

    def around(self, nodes: Sequence[str]) -> list[str]:
        """The nodes that are joined to one of these, in their order, without these."""
        return [x for x in self.features if x not in nodes and self.near[x] & set(nodes)]

    def grown(self, size: int, rng: random.Random) -> list[str]:
        """The seed, and at random so many nodes that are each joined to one before it; fewer, where there are no more."""
        nodes = [self.seed]
        while len(nodes) < size and (ahead := self.around(nodes)):
            nodes.append(rng.choice(ahead))
        return nodes


def _features(nodes: Mapping[str, Any], column: str) -> dict[str, list[float]]:
    """Raises RewardlabError where they are no lists of as many numbers each."""
    found: dict[str, list[float]] = {}
    for name, x in nodes.items():
        numbers = [x] if isinstance(x, int | float) else list_of(x)
        if not numbers or not all(isinstance(y, int | float) for y in numbers):
            raise RewardlabError(f"{column}: the features of {name!r} are {x!r}, and not a list of numbers")
        if found and len(numbers) != len(next(iter(found.values()))):
            raise RewardlabError(f"{column}: {name!r} has {len(numbers)} features, other nodes have another number of them")
        found[name] = [float(y) for y in numbers]
    return found


def _others(meta: Mapping[str, Any], features: Mapping[str, Any]) -> tuple[tuple[str, dict[str, list[float]]], ...]:
    found = []
    for entry in list_of(meta.get("samples")) or []:
        nodes = map_of(entry.get("nodes")) if isinstance(entry, Mapping) else None
        if nodes is None or nodes.keys() != features.keys() or entry.get("label") is None:
            raise RewardlabError('the column samples holds {"label": class, "nodes": features of the same nodes} for each sample')
        found.append((str(entry["label"]), _features(nodes, "samples")))
    return tuple(found)


def logits(weights: Sequence[Tensor], graph: Graph, subsets: Sequence[Sequence[str]]) -> Tensor:
    """(n, classes) the logits of each class for each subset of the nodes."""
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


def learnt(
    samples: Sequence[tuple[str, Graph]], classes: Sequence[str], seed: int, steps: int, lr: float = 0.02
) -> tuple[list[Tensor], float]:
    """Weights that tell the class of a sample from subgraphs that grew from its seed, and their AUC on the last eighth."""
    rng, generator = random.Random(seed_of("subgraphs", seed)), torch.Generator().manual_seed(seed)
    features = len(next(iter(samples[0][1].features.values())))
    shapes = ((2 * features + 1, HIDDEN), (2 * HIDDEN + 1, HIDDEN), (HIDDEN, len(classes)), (len(classes),))
    weights = [(torch.randn(shape, generator=generator) * (0.5 if len(shape) > 1 else 0.0)).requires_grad_() for shape in shapes]
    optimizer, kept = torch.optim.Adam(weights, lr=lr), max(1, len(samples) - max(1, len(samples) // 8))
    for _ in range(steps):
        loss = torch.zeros(())
        for label, graph in (rng.choice(samples[:kept]) for _ in range(2 * len(classes))):
            target = torch.full((EACH,), classes.index(label))
            loss = loss + F.cross_entropy(logits(weights, graph, _subsets(graph, rng)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found: list[tuple[float, bool]] = []
    with torch.no_grad():
        for label, graph in samples[kept:] or samples:
            for chances in logits(weights, graph, _subsets(graph, rng)).softmax(1).tolist():
                found += [(p, c == label) for p, c in zip(chances, classes, strict=True)]
    return [w.detach() for w in weights], auc_of(found)


def _subsets(graph: Graph, rng: random.Random) -> list[list[str]]:
    return [graph.grown(rng.randint(2, max(2, len(graph.features))), rng) for _ in range(EACH)]


def weights_in(groups: list[Group], run: Run, steps: int) -> list[Tensor]:
    """The weights in the run's memory; at first they are learnt, from the problems there, and those of these groups."""
    if MEMORY not in run.memory:
        problems = [group[0].problem for group in groups if group]
        graphs = [g for meta in (*run.memory.get(EXAMPLES, ()), *(p.meta for p in problems)) if (g := Graph.of(meta))]
        samples = [pair for g in graphs for pair in g.samples()]
        classes = sorted({label for label, _ in samples})
        if len(classes) < 2:
            raise RewardlabError(
                "the graph network learns from samples of two classes or more: bring graphs (nodes, edges, seed) whose label "
                f"differs, or samples of other classes in the column samples; classes: {', '.join(classes) or 'none'}"
            )
        weights, auc = learnt(samples, classes, run.seed, steps)
        run.memory[MEMORY], run.memory[AUC], run.memory[CLASSES] = [w.tolist() for w in weights], auc, classes
    run.log("graph_auc", run.memory[AUC])
    return [torch.tensor(w) for w in run.memory[MEMORY]]


@reward(over="groups")
def grown_subgraph(
    groups: list[Group], run: Run, *, ahead: NonNegativeFloat = 1.0, invalid: NonNegativeFloat = 1.0, learning: PositiveInt = 300
) -> Scores:
    """At the end of each line that names a node: R = [p(G) - 1/C] + ahead mean over u [p(G + u) - 1/C] - invalid [no neighbour].

    p: the chance of the sample's own class (column `label`), of C, from G: the seed and the nodes kept before, with this one; u: a
    node joined to it, G itself where there is none. One that is there already, or not joined to G, is invalid, and p is that of
    what was there. A line that lists several nodes earns the sum of theirs; one that names none, and what stands in the thinking,
    nothing. The network learns once, at the first call, for `learning` steps, from the problems of the step and those that
    `with_examples` has remembered. Logged: graph_auc, on samples that it has not seen. No verdict where the problem has no graph
    (columns nodes, edges, seed) or no label.
    """
    rows = rows_in_steps(groups, "grown_subgraph")
    weights = weights_in(groups, run, learning)
    classes = run.memory[CLASSES]
    scores = iter([_score(t, weights, classes, ahead, invalid) for t in rows])
    return [[next(scores) for _ in group] for group in groups]


def _score(t: Trajectory, weights: Sequence[Tensor], classes: Sequence[str], ahead: float, invalid: float) -> Score:
    graph, lines = Graph.of(t.problem.meta), step_texts(t, "newline")
    if graph is None or len(lines) != len(t.steps):
        return Score(None, why="the problem has no graph, or text and tokens disagree")
    if graph.label not in classes:
        return Score(None, why=f"the sample's class {graph.label!r} is none of those learnt: {', '.join(classes)}")
    own, kept, steps = classes.index(graph.label), [graph.seed], list[tuple[int, float]]()
    for at, line in zip(t.steps, visible(lines), strict=True):
        named = added(line, graph.features, kept)
        total = 0.0
        for node in named:
            valid = node in graph.around(kept)
            nodes = [*kept, node] if valid else kept
            worth = step_worth(chances(weights, graph, nodes, own), ahead, 1 / len(classes)) - invalid * (not valid)
            kept, total = nodes if worth > 0 else kept, total + worth
        steps += [(at, total)] if named else []
    return Score(steps=steps, why=f"kept {' '.join(kept)}") if steps else Score(0.0, why="no line names a node")


def chances(weights: Sequence[Tensor], graph: Graph, nodes: Sequence[str], own: int) -> list[float]:
    """p of the class `own` from these nodes, and from them with each node around them."""
    subsets: list[Any] = [list(nodes), *([*nodes, u] for u in graph.around(nodes))]
    with torch.no_grad():
        return logits(weights, graph, subsets).softmax(1)[:, own].tolist()


def step_worth(p: Sequence[float], ahead: float, chance: float = 0.5) -> float:
    """[p(G) - chance] + ahead mean over u of [p(G + u) - chance], from p(G) and the p(G + u)."""
    further = p[1:] or p[:1]
    return p[0] - chance + ahead * (sum(further) / len(further) - chance)


@rollout(wraps="inner")
def with_examples(
    problems: list[Problem], run: Run, *, inner: Rollout, n: PositiveInt = 64, columns: tuple[str, ...] = ()
) -> list[Group]:
    """The groups of `inner`. Before the first step, these columns of n further problems are remembered, or of those of the step."""
    if EXAMPLES not in run.memory:
        seen = run.more_problems(n) if run.more_problems else problems
        run.memory[EXAMPLES] = [{c: p.meta[c] for c in columns if c in p.meta} for p in seen]
    return inner(problems, run)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def galax(
    base: Recipe | None = None, *, weight: NonNegativeFloat = 0.5, ahead: float = 1.0, invalid: float = 1.0, graphs: int = 64,
    graph_steps: int = 300, n: int = 8,
) -> Recipe:  # fmt: skip
    """weight: of the steps beside the answer; 0 pays the answer alone.  ahead, invalid: as above.  graphs, graph_steps: that the
    network learns from, and for how long.  n: replies per problem."""
    base = base or grpo(n=n)
    answer, grown = base.reward or correct(), independent(n=n, steps="newline")
    grown = with_examples(inner=grown, n=graphs, columns=("nodes", "edges", "seed", "label", "samples"))
    if not weight:
        return base.but(rollout=grown, reward=answer)
    return base.but(
        rollout=grown, reward=answer + weight * grown_subgraph(ahead=ahead, invalid=invalid, learning=graph_steps),
        credit=by_term(chains={"grown_subgraph": to_go()}, others=base.required("credit")),
    )  # fmt: skip


fidelity = "core"
left_out = "a graph network that grows the subgraph (here the language model does), and omics with a model pretrained on them"
data = Data(
    prompt="a question that shows a graph", answer="the nodes that it asks for, a list", label="the class of the sample",
    nodes="the name of each node, and its features: a list of numbers", edges="pairs of names that are joined, a list",
    seed="the node where the subgraph begins",
    samples=Column("samples of other classes on this graph, a list of label and nodes; for rows of one class", optional=True),
    rows=[
        {"prompt": "TP53 2.1, MDM2 1.8, ALB 0.1; TP53-MDM2, MDM2-ALB. Which genes act with TP53? Name a gene a line.",
         "answer": ["MDM2"], "nodes": {"TP53": [2.1], "MDM2": [1.8], "ALB": [0.1]}, "edges": [["TP53", "MDM2"], ["MDM2", "ALB"]],
         "seed": "TP53", "label": "ill", "samples": [{"label": "well", "nodes": {"TP53": [0.2], "MDM2": [0.3], "ALB": [0.9]}}]},
        {"prompt": "EGFR 1.9, KRAS 1.7, INS 0.2; EGFR-KRAS, EGFR-INS. Which genes act with EGFR? Name a gene a line.",
         "answer": ["KRAS"], "nodes": {"EGFR": [1.9], "KRAS": [1.7], "INS": [0.2]}, "edges": [["EGFR", "KRAS"], ["EGFR", "INS"]],
         "seed": "EGFR", "label": "ill", "samples": [{"label": "well", "nodes": {"EGFR": [0.3], "KRAS": [0.1], "INS": [0.8]}}]},
    ], verified_by="same_set",
)  # fmt: skip

claim = Claim(
    says="paid for each node by the graph network as well, a policy finds more of planted modules than by the answer alone",
    versus="galax", task="modules:careful=0.8", measure="reward", direction="higher", margin=0.01, settings={"problems": 32},
    versus_settings={"weight": 0.0, "problems": 32}, by=mean_reward(), problems=500, steps=60,
    fault=Within("reward", high=0.9, says="F1 by the answer alone"),
    judge=Within("train.graph_auc", low=0.7, says="the network on graphs that it has not seen"), learns="reward", start=None,
    tried="2 seeds each, at 1e-3: careful=.45, 80 steps, R of each node alone: from F1 .36, chance, to .45, the answer alone "
    "stays; nodes=6,members=3,careful=.8, 60 steps: from .47 to .49, the answer alone to .42, but the network's AUC is .64",
    finding="F1 rises from .34 to .36 when nodes are paid too, to .35 by the answer alone: neither learns here, so that nothing is "
    "decided, although the network tells samples that it has not seen apart (AUC .85)",
)  # fmt: skip
baseline = "grpo"
