"""The size of an optimal solution of a graph problem, by exact search; None if there is no solution.

Problems whose size does not matter, such as a topological order, give 0. Some searches take exponential time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import networkx as nx

Graph = Any
Problem = Mapping[str, Any]

MOST_CITIES = 14
"""Most nodes of a graph whose shortest tour is searched for."""


def shortest_path(graph: Graph, problem: Problem) -> float | None:
    """The length of the shortest path. Raises ValueError for negative weights, with which the shortest simple path is NP-hard."""
    if any(weight < 0 for _, _, weight in graph.edges(data="weight")):
        raise ValueError("a weight is below 0")
    try:
        return nx.shortest_path_length(graph, str(problem["source"]), str(problem["target"]), weight="weight")
    except nx.NetworkXNoPath:
        return None


def hamiltonian_path(graph: Graph, problem: Problem) -> float | None:
    starts = [str(problem["source"])] if "source" in problem else list(graph)
    end = str(problem["target"]) if "target" in problem else None
    return next((0.0 for start in starts if _visits_all(graph, start, lambda last: end in (None, last))), None)


def hamiltonian_cycle(graph: Graph, problem: Problem) -> float | None:
    if len(graph) < (2 if graph.is_directed() else 3):
        return None
    start = next(iter(graph))
    return 0.0 if _visits_all(graph, start, lambda last: graph.has_edge(last, start)) else None


def shortest_tour(graph: Graph, problem: Problem) -> float | None:
    """The length of the shortest tour (Held and Karp 1962). Raises ValueError for more than MOST_CITIES nodes."""
    if len(graph) > MOST_CITIES:
        raise ValueError(f"problems with tours of over {MOST_CITIES} nodes must state the required length")
    # cheaper than the search below, which visits every subset of the nodes
    if hamiltonian_cycle(graph, problem) is None:
        return None
    start, *others = graph
    weight = {(u, v): w for u, v, w in graph.edges(data="weight")}
    if not graph.is_directed():
        # an undirected edge is traversed in both directions
        weight |= {(v, u): w for (u, v), w in weight.items()}
    # (set of visited nodes as bits, last node): the length of the shortest way there
    reached = {(1 << i, i): weight[start, node] for i, node in enumerate(others) if (start, node) in weight}
    for _ in others[1:]:
        longer: dict[tuple[int, int], float] = {}
        for (visited, i), length in reached.items():
            for j, node in enumerate(others):
                if not visited >> j & 1 and (others[i], node) in weight:
                    state, total = (visited | 1 << j, j), length + weight[others[i], node]
                    longer[state] = min(total, longer.get(state, total))
        reached = longer
    return min(
        (length + weight[others[i], start] for (_, i), length in reached.items() if (others[i], start) in weight), default=None
    )


def topological_order(graph: Graph, problem: Problem) -> float | None:
    return 0.0 if nx.is_directed_acyclic_graph(graph) else None


def eulerian_path(graph: Graph, problem: Problem) -> float | None:
    multigraph, connected = _multigraph(graph)
    start, end = (str(problem[key]) if key in problem else None for key in ("source", "target"))
    if not connected or not nx.has_eulerian_path(connected):
        return None if multigraph.number_of_edges() else 0.0
    if nx.is_eulerian(connected):
        return 0.0 if (start is None or start in connected) and end in (None, start or end) else None
    # not a circuit: an undirected path ends at the two odd nodes; a directed one starts where more edges leave than enter
    odd = {
        node
        for node in connected
        if (connected.out_degree(node) - connected.in_degree(node) if connected.is_directed() else connected.degree(node) % 2) > 0
    }
    ends = {node for node in connected if connected.is_directed() and connected.in_degree(node) > connected.out_degree(node)} or odd
    return 0.0 if start in (None, *odd) and end in (None, *ends) and (start is None or start != end) else None


def eulerian_circuit(graph: Graph, problem: Problem) -> float | None:
    multigraph, connected = _multigraph(graph)
    return 0.0 if not multigraph.number_of_edges() or nx.is_eulerian(connected) else None


def coloring(graph: Graph, problem: Problem) -> float | None:
    """The fewest colours of a proper colouring; if a number is allowed, that number, or None if it is too small."""
    plain = graph.to_undirected()
    if nx.number_of_selfloops(plain):
        return None
    allowed_colours = problem.get("colors")
    allowed = len(allowed_colours) if isinstance(allowed_colours, list) else allowed_colours
    # one colour more at a time: the first number that suffices is the smallest
    for count in range(1, len(plain) + 1) if allowed is None else [allowed]:
        if _colourable(plain, {}, count):
            return count
    return None


def matching(graph: Graph, problem: Problem) -> float | None:
    return len(nx.max_weight_matching(_without_loops(graph), maxcardinality=True, weight=None))


def perfect_matching(graph: Graph, problem: Problem) -> float | None:
    size = matching(graph, problem) or 0
    return size if 2 * size == len(graph) else None


def spanning_tree(graph: Graph, problem: Problem) -> float | None:
    if graph.is_directed():
        raise ValueError("a spanning tree needs an undirected graph")
    return nx.minimum_spanning_tree(graph).size(weight="weight") if nx.is_connected(graph) else None


def clique(graph: Graph, problem: Problem) -> float | None:
    return nx.max_weight_clique(_without_loops(graph), weight=None)[1]


def independent_set(graph: Graph, problem: Problem) -> float | None:
    plain = graph.to_undirected()
    plain.remove_nodes_from(list(nx.nodes_with_selfloops(plain)))
    return nx.max_weight_clique(nx.complement(plain), weight=None)[1] if plain else 0


def vertex_cover(graph: Graph, problem: Problem) -> float | None:
    return len(graph) - (independent_set(graph, problem) or 0)


def _visits_all(graph: Graph, start: str, may_end: Any) -> bool:
    """Whether some path from `start` visits every node once. Each pair (visited nodes, last node) is tried only once."""
    bit = {node: 1 << i for i, node in enumerate(graph)}
    full = (1 << len(bit)) - 1

    @lru_cache(maxsize=1_000_000)
    def can_finish(last: str, visited: int) -> bool:
        if visited == full:
            return bool(may_end(last))
        return any(can_finish(node, visited | bit[node]) for node in graph[last] if not visited & bit[node])

    return can_finish(start, bit[start])


def _colourable(graph: Graph, colours: dict[str, int], count: int) -> bool:
    """Whether the rest of the graph can be coloured (Brélaz 1979): the node with the fewest colours left is next.

    Colours that are not used yet are interchangeable, so only one of them is tried.
    """
    uncoloured = [node for node in graph if node not in colours]
    if not uncoloured:
        return True
    neighbour_colours = {node: {colours[other] for other in graph[node] if other in colours} for node in uncoloured}
    node = max(uncoloured, key=lambda node: (len(neighbour_colours[node]), graph.degree(node)))
    for colour in range(min(count, max(colours.values(), default=-1) + 2)):
        if colour not in neighbour_colours[node] and _colourable(graph, colours | {node: colour}, count):
            return True
    return False


def _multigraph(graph: Graph) -> tuple[Graph, Graph]:
    """The graph with its parallel edges, and its part without isolated nodes."""
    multigraph = nx.MultiDiGraph() if graph.is_directed() else nx.MultiGraph()
    multigraph.add_nodes_from(graph)
    multigraph.add_edges_from((u, v) for u, v, count in graph.edges(data="count") for _ in range(count))
    return multigraph, multigraph.subgraph([node for node in multigraph if multigraph.degree(node)])


def _without_loops(graph: Graph) -> Graph:
    plain = graph.to_undirected()
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    return plain
