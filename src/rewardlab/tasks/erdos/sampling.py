"""Small graphs to ask about: parts of real networks, found by a random walk that often returns, with nodes numbered from 1."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import networkx as nx

Graph = Any

NETWORKS = ("karate_club", "les_miserables", "davis_southern_women", "florentine_families")
"""Real networks that come with networkx: friends, characters of a novel, guests of events, families that married."""
RETURN, STEPS = 0.15, 200
"""How often a walk returns to its start, and after how many steps it begins anew elsewhere."""


@cache
def network(name: str) -> Graph:
    return nx.Graph(getattr(nx, f"{name}_graph")().edges)


def part(rng: random.Random, low: int, high: int) -> Graph:
    """A connected part of a real network with `low` to `high` nodes, numbered in random order."""
    whole, size = network(rng.choice(NETWORKS)), rng.randint(low, high)
    while True:
        start = here = rng.choice(list(whole))
        found = {start}
        for _ in range(STEPS):
            here = start if rng.random() < RETURN else rng.choice(list(whole[here]))
            found.add(here)
            if len(found) == size:
                # in the network's order: that of a set of texts differs from process to process
                chosen = [node for node in whole if node in found]
                numbers = dict(zip(chosen, rng.sample(range(1, size + 1), size), strict=True))
                return rebuilt(range(1, size + 1), [(numbers[u], numbers[v]) for u, v in whole.subgraph(chosen).edges])


def rebuilt(nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> Graph:
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    # sorted: parts of a graph list their edges in the order of a set
    graph.add_edges_from(sorted({(min(edge), max(edge)) for edge in edges}))
    return graph


# ---- what some questions need: graphs for which both answers are likely, or which have a solution at all ---------------------

Change = Callable[[random.Random, Graph], Graph]


def as_it_is(rng: random.Random, graph: Graph) -> Graph:
    return graph


def tree(rng: random.Random, graph: Graph) -> Graph:
    """Half of the time without cycles."""
    return rebuilt(graph, nx.bfs_tree(graph, 1).edges) if rng.random() < 0.5 else graph


def ring(rng: random.Random, graph: Graph) -> Graph:
    """Half of the time a ring, in which each node has two neighbours."""
    order = rng.sample(list(graph), len(graph))
    return rebuilt(graph, pairwise([*order, order[0]])) if rng.random() < 0.5 else graph


def two_sides(rng: random.Random, graph: Graph) -> Graph:
    """Without the edges within either of two sides; each node keeps one across."""
    side = {v: d % 2 for v, d in nx.single_source_shortest_path_length(graph, 1).items()}
    return rebuilt(graph, [(u, v) for u, v in graph.edges if side[u] != side[v]])


def maybe_two_sides(rng: random.Random, graph: Graph) -> Graph:
    return two_sides(rng, graph) if rng.random() < 0.5 else graph


def thinned(rng: random.Random, graph: Graph) -> Graph:
    """With half of its edges, and so often in several parts."""
    return rebuilt(graph, [edge for edge in graph.edges if rng.random() < 0.5] or list(graph.edges)[:1])


def with_path(rng: random.Random, graph: Graph) -> Graph:
    """With edges added along a path through all nodes."""
    order = rng.sample(list(graph), len(graph))
    return rebuilt(graph, [*graph.edges, *pairwise(order)])


def weighted(rng: random.Random, graph: Graph) -> Graph:
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = rng.randint(1, 9)
    return graph


def complete(rng: random.Random, graph: Graph) -> Graph:
    return weighted(rng, rebuilt(graph, combinations(graph, 2)))


def directed(rng: random.Random, graph: Graph) -> Graph:
    """Each edge with a direction at random."""
    arrows = nx.DiGraph()
    arrows.add_nodes_from(graph)
    arrows.add_edges_from((u, v, d) if rng.random() < 0.5 else (v, u, d) for u, v, d in graph.edges(data=True))
    return arrows


def flow(rng: random.Random, graph: Graph) -> Graph:
    return directed(rng, weighted(rng, graph))


def acyclic(rng: random.Random, graph: Graph) -> Graph:
    """Directed along a random order."""
    place = {v: rng.random() for v in graph}
    arrows = nx.DiGraph()
    arrows.add_nodes_from(graph)
    arrows.add_edges_from((u, v) if place[u] < place[v] else (v, u) for u, v in graph.edges)
    return arrows


def tournament(rng: random.Random, graph: Graph) -> Graph:
    """Half of the time with an arrow between any two."""
    return directed(rng, rebuilt(graph, combinations(graph, 2))) if rng.random() < 0.5 else directed(rng, graph)
