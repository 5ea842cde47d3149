"""Small graph problems with several right answers, checked on the graph and not against one gold answer.

Find a shortest path from B to C. Edges: A-B 1, A-C 5, A-D 2, B-D 4, C-D 2.       Answer: B -> A -> D -> C
Colour the nodes red, green or blue, joined nodes differently. Edges: A-B, B-C.   Answer: A: red, B: green, C: red
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from string import ascii_uppercase
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

Edges = list[list[Any]]

COLOURS = ("red", "green", "blue")
MOST_NODES = 12


def graphs(
    *,
    kinds: str | tuple[str, ...] = (),
    nodes: tuple[int, int] = (4, 6),
    test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
    error: Share = 0.3,
) -> Task:
    """Shortest paths, colourings, matchings, topological orders and Hamiltonian paths.

    kinds: one or some of these by their names in `KINDS`; all where none is given.  nodes: lowest and highest number (of a
    matching: on either side).  error: how often the teacher of `demonstrate` gives a near miss.
    size: so many training problems, in epochs; None: endless.
    """
    chosen = (kinds,) if isinstance(kinds, str) else tuple(kinds) or tuple(KINDS)
    for kind in chosen:
        if kind not in KINDS:
            raise unknown("kind of graph problem", kind, KINDS)
    low, high = _bounds(nodes)
    if not 0 <= error <= 1:
        raise RewardlabError(f"graphs: error is a probability between 0 and 1, not {error}")
    sample, key = partial(_sample, kinds=chosen, low=low, high=high), ("graphs", *chosen, low, high)
    return Task(
        name="graphs",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="graph_solution",
        max_new=12 * (high + 1),
        about=f"{', '.join(chosen).replace('_', ' ')} on graphs of {low} to {high} nodes",
        demonstrate=partial(_demonstrate, error=error),
        columns=("prompt", "answer", "kind", "parts", "solution"),
    )


def _bounds(nodes: Any) -> tuple[int, int]:
    match nodes:
        case [int() as low, int() as high] if 3 <= low <= high <= MOST_NODES:
            return low, high
    raise RewardlabError(f"graphs: nodes is (lowest, highest), between 3 and {MOST_NODES}, not {nodes}")


def _sample(rng: random.Random, *, kinds: Sequence[str], low: int, high: int) -> Problem:
    kind = rng.choice(kinds)
    names = list(ascii_uppercase[: rng.randint(low, high)])
    question, edges, fields, parts = KINDS[kind](rng, names)
    shown = ", ".join(
        f"{u}{'>' if fields.get('directed') else '-'}{v}{''.join(f' {w}' for w in weight)}" for u, v, *weight in edges
    )
    nodes = sorted({*names, *(v for _, v, *_ in edges)})
    graph = {"nodes": nodes, "edges": edges, "directed": fields.pop("directed", False)}
    answer = {"kind": kind, "graph": graph, "solvable": True, **fields}
    return ask(f"{question} Edges: {shown}.", answer, kind=kind, parts=parts, solution=_written(kind, parts))


def _shortest_path(rng: random.Random, names: list[str]) -> tuple[str, Edges, dict[str, Any], list[str]]:
    import networkx as nx

    edges = [[u, v, rng.randint(1, 9)] for u, v in _connected(rng, names)]
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    source, target = rng.sample(names, 2)
    path = nx.shortest_path(graph, source, target, weight="weight")
    return f"Find a shortest path from {source} to {target}.", edges, {"source": source, "target": target}, path


def _coloring(rng: random.Random, names: list[str]) -> tuple[str, Edges, dict[str, Any], list[str]]:
    """Each node gets a colour, and only nodes of different colours are joined: so a colouring exists."""
    parts = [rng.choice(COLOURS) for _ in names]
    pairs = [[u, v] for (u, a), (v, b) in combinations(zip(names, parts, strict=True), 2) if a != b and rng.random() < 0.7]
    question = f"Colour the nodes {', '.join(names)} {', '.join(COLOURS[:-1])} or {COLOURS[-1]}, joined nodes differently."
    return question, pairs, {"colors": list(COLOURS)}, [f"{node}: {colour}" for node, colour in zip(names, parts, strict=True)]


def _matching(rng: random.Random, names: list[str]) -> tuple[str, Edges, dict[str, Any], list[str]]:
    import networkx as nx

    pairs = [[name, str(i)] for name in names for i in range(1, len(names) + 1) if rng.random() < 0.4]
    # a graph without edges has nothing to match
    pairs = pairs or [[names[0], "1"]]
    matching = nx.max_weight_matching(nx.Graph(pairs), maxcardinality=True)
    # networkx returns a set of unordered pairs: sorted, so that the gold answer repeats
    edges = sorted("-".join(sorted(pair, reverse=True)) for pair in matching)
    return "Match as many letters with numbers as you can, each at most once.", pairs, {}, edges


def _topological_order(rng: random.Random, names: list[str]) -> tuple[str, Edges, dict[str, Any], list[str]]:
    order = rng.sample(names, len(names))
    pairs = [[u, v] for u, v in combinations(order, 2) if rng.random() < 0.4]
    # otherwise the edges would list the nodes in the order that is asked for
    rng.shuffle(pairs)
    return f"Order {', '.join(names)} so that every edge points forward.", pairs, {"directed": True}, order


def _hamiltonian_path(rng: random.Random, names: list[str]) -> tuple[str, Edges, dict[str, Any], list[str]]:
    """The path is made first, then other edges are added, so a path exists."""
    path = rng.sample(names, len(names))
    on_path = {frozenset(pair) for pair in pairwise(path)}
    pairs = [[u, v] for u, v in combinations(names, 2) if {u, v} in on_path or rng.random() < 0.2]
    return "Find a path that visits every node once.", pairs, {}, path


def _connected(rng: random.Random, names: list[str]) -> list[tuple[str, str]]:
    """A random tree, and a third of all other edges."""
    tree = {frozenset((node, rng.choice(names[:i]))) for i, node in enumerate(names) if i}
    return [pair for pair in combinations(names, 2) if frozenset(pair) in tree or rng.random() < 1 / 3]


KINDS: dict[str, Callable[[random.Random, list[str]], tuple[str, Edges, dict[str, Any], list[str]]]] = {
    "shortest_path": _shortest_path,
    "coloring": _coloring,
    "maximum_matching": _matching,
    "topological_order": _topological_order,
    "hamiltonian_path": _hamiltonian_path,
}
"""For each kind: its question, its edges, further fields that its verifier needs, and the parts of a right answer."""


def _written(kind: str, parts: Sequence[str]) -> str:
    return f"Answer: {(', ' if kind in ('coloring', 'maximum_matching') else ' -> ').join(parts)}"


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    """A right answer, or a near miss: two neighbours of an order swapped, a node in another colour, an edge left out."""
    kind, parts = problem.meta["kind"], list(problem.meta["parts"])
    if rng.random() < error:
        position = rng.randrange(len(parts))
        if kind == "coloring":
            node, _, colour = parts[position].partition(": ")
            parts[position] = f"{node}: {rng.choice([other for other in COLOURS if other != colour])}"
        elif kind == "maximum_matching":
            del parts[position]
        else:
            parts[position - 1], parts[position] = parts[position], parts[position - 1]
    return _written(kind, parts)
