"""The questions of Erdos, by its names, each with tier, wording and answer by networkx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import networkx as nx

from . import sampling as of

Graph = Any
EASY, MEDIUM, HARD, CHALLENGING = TIERS = ("easy", "medium", "hard", "challenging")


class Kind(NamedTuple):
    """asks: the question, with {u} and {v} for the nodes that it is about.  answer: (graph, u, v) -> a number, a bool, a list of
    nodes or of edges; of a question with several right answers, one of them.  graph: what the graph must be like.  checked: the
    kind of problem by which `graph_solution` judges; "" where there is one answer.  nodes: how many it is about.
    """

    tier: str
    asks: str
    answer: Callable[[Graph, int, int], Any]
    graph: of.Change = of.as_it_is
    checked: str = ""
    nodes: int = 0


def _joined(graph: Graph, u: int, v: int) -> list[int]:
    return sorted(nx.common_neighbors(graph, u, v))


def _first(pairs: Any) -> float:
    """The value that networkx gives for a single pair of nodes."""
    return next(float(value) for _, _, value in pairs)


def _sorted_edges(edges: Any) -> list[list[int]]:
    return sorted(sorted(edge) for edge in edges)


def _hamiltonian(graph: Graph, u: int, v: int) -> list[int]:
    def finish(path: list[int]) -> list[int] | None:
        if len(path) == len(graph):
            return path
        return next((found for n in graph[path[-1]] if n not in path and (found := finish([*path, n]))), None)

    return next(found for start in graph if (found := finish([start])))


def _shortest_tour(graph: Graph, u: int, v: int) -> list[int]:
    from itertools import pairwise, permutations

    first, *others = graph
    tours = ([first, *order, first] for order in permutations(others))
    return min(tours, key=lambda tour: sum(graph.edges[edge]["weight"] for edge in pairwise(tour)))


def _tree(graph: Graph, u: int, v: int) -> list[list[int]]:
    return _sorted_edges(nx.minimum_spanning_tree(graph).edges)


def _path(weight: str | None) -> Callable[[Graph, int, int], Sequence[int]]:
    return lambda g, u, v: nx.shortest_path(g, u, v, weight=weight)


SMALLEST = "Which nodes, as few as possible, touch every edge?"
KINDS: dict[str, Kind] = {
    "node_number": Kind(EASY, "How many nodes are there?", lambda g, u, v: len(g)),
    "edge_number": Kind(EASY, "How many edges are there?", lambda g, u, v: g.number_of_edges()),
    "degree": Kind(EASY, "How many neighbours has {u}?", lambda g, u, v: g.degree(u), nodes=1),
    "neighbor": Kind(EASY, "Which are the neighbours of {u}?", lambda g, u, v: sorted(g[u]), nodes=1),
    "common_neighbor": Kind(EASY, "Which neighbours do {u} and {v} share?", _joined, nodes=2),
    "edge_existence": Kind(EASY, "Are {u} and {v} joined?", lambda g, u, v: g.has_edge(u, v), nodes=2),
    "has_cycle": Kind(EASY, "Is there a cycle?", lambda g, u, v: not nx.is_forest(g), of.tree),
    "is_regular": Kind(EASY, "Have all nodes as many neighbours?", lambda g, u, v: nx.is_regular(g), of.ring),
    "is_tournament": Kind(EASY, "Is there one arrow between any two nodes?", lambda g, u, v: nx.is_tournament(g), of.tournament),
    "density": Kind(EASY, "Which share of all possible edges is there?", lambda g, u, v: float(nx.density(g))),
    "dominating_set": Kind(
        EASY, "Which nodes make a dominating set?", lambda g, u, v: sorted(nx.dominating_set(g)), checked="dominating_set"
    ),
    "bfs": Kind(
        EASY, "By which edges does a breadth-first search from {u} go?", lambda g, u, v: [*map(list, nx.bfs_edges(g, u))],
        checked="bfs", nodes=1,
    ),
    "dfs": Kind(
        EASY, "By which edges does a depth-first search from {u} go?", lambda g, u, v: [*map(list, nx.dfs_edges(g, u))],
        checked="dfs", nodes=1,
    ),
    "minimum_spanning_tree": Kind(EASY, "Which edges make a spanning tree?", _tree, checked="spanning_tree"),
    "clustering_coefficient": Kind(
        MEDIUM, "Of the pairs of neighbours of {u}, which share is joined?", lambda g, u, v: float(nx.clustering(g, u)), nodes=1
    ),
    "connected_component_number": Kind(
        MEDIUM, "Of how many connected parts is it?", lambda g, u, v: nx.number_connected_components(g), of.thinned
    ),
    "jaccard_coefficient": Kind(
        MEDIUM, "What is the Jaccard coefficient of the neighbours of {u} and {v}?",
        lambda g, u, v: _first(nx.jaccard_coefficient(g, [(u, v)])), nodes=2,
    ),
    "adamic_adar_index": Kind(
        MEDIUM, "What is the Adamic-Adar index of {u} and {v}?", lambda g, u, v: _first(nx.adamic_adar_index(g, [(u, v)])), nodes=2
    ),
    "resource_allocation_index": Kind(
        MEDIUM, "What is the resource allocation index of {u} and {v}?",
        lambda g, u, v: _first(nx.resource_allocation_index(g, [(u, v)])), nodes=2,
    ),
    "degree_centrality": Kind(
        MEDIUM, "To which share of the other nodes is {u} joined?", lambda g, u, v: g.degree(u) / (len(g) - 1), nodes=1
    ),
    "is_bipartite": Kind(MEDIUM, "Is the graph bipartite?", lambda g, u, v: nx.is_bipartite(g), of.maybe_two_sides),
    "is_eularian": Kind(MEDIUM, "Is there an Eulerian circuit?", lambda g, u, v: nx.is_eulerian(g), of.ring),
    "local_connectivity": Kind(
        MEDIUM, "Is there a path between {u} and {v}?", lambda g, u, v: nx.has_path(g, u, v), of.thinned, nodes=2
    ),
    "bipartite_maximum_matching": Kind(
        MEDIUM, "Which edges make a matching as large as possible?",
        lambda g, u, v: _sorted_edges(nx.max_weight_matching(g, maxcardinality=True)), of.two_sides, "maximum_matching",
    ),
    "min_edge_covering": Kind(
        MEDIUM, "Which edges, as few as possible, touch every node?", lambda g, u, v: _sorted_edges(nx.min_edge_cover(g)),
        checked="edge_cover",
    ),
    "max_weight_matching": Kind(
        HARD, "Which edges make a matching as heavy as possible?", lambda g, u, v: _sorted_edges(nx.max_weight_matching(g)),
        of.weighted, "max_weight_matching",
    ),
    "closeness_centrality": Kind(
        HARD, "What is the closeness centrality of {u}?", lambda g, u, v: float(nx.closeness_centrality(g, u)), nodes=1
    ),
    "harmonic_centrality": Kind(
        HARD, "What is the sum of 1 / distance from {u} to all others?",
        lambda g, u, v: float(nx.harmonic_centrality(g, [u])[u]), nodes=1,
    ),
    "betweenness_centrality": Kind(
        HARD, "Which share of the shortest paths between others goes through {u}?",
        lambda g, u, v: float(nx.betweenness_centrality(g)[u]), nodes=1,
    ),
    "average_neighbor_degree": Kind(
        HARD, "How many neighbours have the neighbours of {u} on average?",
        lambda g, u, v: float(nx.average_neighbor_degree(g, nodes=[u])[u]), nodes=1,
    ),
    "traveling_salesman_problem": Kind(
        HARD, "Which is the shortest tour through all nodes and back?", _shortest_tour, of.complete, "tsp_tour"
    ),
    "strongly_connected_number": Kind(
        HARD, "Of how many strongly connected parts is it?", lambda g, u, v: nx.number_strongly_connected_components(g), of.directed
    ),
    "shortest_path": Kind(
        HARD, "Which is a shortest path from {u} to {v}?", _path(None), checked="shortest_path", nodes=2
    ),
    "center": Kind(HARD, "Which nodes are the center?", lambda g, u, v: sorted(nx.center(g))),
    "periphery": Kind(HARD, "Which nodes are the periphery?", lambda g, u, v: sorted(nx.periphery(g))),
    "barycenter": Kind(HARD, "Which nodes are nearest to all others in sum?", lambda g, u, v: sorted(nx.barycenter(g))),
    "diameter": Kind(HARD, "What is the diameter?", lambda g, u, v: nx.diameter(g)),
    "radius": Kind(HARD, "What is the radius?", lambda g, u, v: nx.radius(g)),
    "triangles": Kind(HARD, "In how many triangles is {u}?", lambda g, u, v: nx.triangles(g, u), nodes=1),
    "bridges": Kind(HARD, "Which edges are bridges?", lambda g, u, v: _sorted_edges(nx.bridges(g))),
    "topological_sort": Kind(
        HARD, "In which order do all arrows point forward?", lambda g, u, v: list(nx.topological_sort(g)), of.acyclic,
        "topological_order",
    ),
    "isomophic_mapping": Kind(
        CHALLENGING, "Which node of the other graph is each?", lambda g, u, v: None, checked="isomorphism"
    ),
    "global_efficiency": Kind(
        CHALLENGING, "What is the mean of 1 / distance over all pairs?", lambda g, u, v: float(nx.global_efficiency(g))
    ),
    "maximal_independent_set": Kind(
        CHALLENGING, "Which nodes make a maximal independent set?",
        lambda g, u, v: sorted(nx.maximal_independent_set(g, seed=0)), checked="maximal_independent_set",
    ),
    "maximum_flow": Kind(
        CHALLENGING, "What is the maximum flow from {u} to {v}?",
        lambda g, u, v: int(nx.maximum_flow_value(g, u, v, capacity="weight")), of.flow, nodes=2,
    ),
    "wiener_index": Kind(CHALLENGING, "What is the sum of the distances of all pairs?", lambda g, u, v: int(nx.wiener_index(g))),
    "hamiltonian_path": Kind(
        CHALLENGING, "Which path visits every node once?", _hamiltonian, of.with_path, "hamiltonian_path"
    ),
    "min_vertex_cover": Kind(
        CHALLENGING, SMALLEST, lambda g, u, v: sorted(set(g) - {*nx.max_weight_clique(nx.complement(g), weight=None)[0]}),
        checked="vertex_cover",
    ),
    "weighted_shortest_path": Kind(
        CHALLENGING, "Which is a lightest path from {u} to {v}?", _path("weight"), of.weighted, "shortest_path", 2
    ),
    "weighted_minimum_spanning_tree": Kind(
        CHALLENGING, "Which edges make the lightest spanning tree?", _tree, of.weighted, "minimum_spanning_tree"
    ),
}  # fmt: skip
"""Tiers as in the released reward, which scales none of them."""
