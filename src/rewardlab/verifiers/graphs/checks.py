"""Check by algorithm whether an answer solves a graph problem. Every valid solution counts, not only one gold answer.

    {"kind": "shortest_path", "source": "A", "target": "D",
     "graph": {"nodes": ["A", "B", "C", "D"], "edges": [["A", "B", 4], ...], "directed": false}}

`judge` runs in worker processes with a time limit: replies are read in linear time, but some problems are NP-hard.
The right answer to a problem without a solution is to say so.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx

from . import orders, search
from .answers import Unreadable, answer, names, read_colours, read_edges, read_nodes, says_none

Graph = Any
Problem = Mapping[str, Any]


class Kind(NamedTuple):
    """How one kind of problem is checked.

    read: text to an answer.  fault: why an answer is not a solution, or "".  size: the quantity that is bounded or optimised.
    best: the size of an optimal solution, None if there is no solution.  sense: 1 to maximise the size, -1 to minimise it.
    bound: the problem's key with a bound on the size.  extreme: without that key, the size must be optimal.
    """

    read: Callable[..., Any]
    fault: Callable[[Graph, Any, Problem], str]
    size: Callable[[Graph, Any], float]
    best: Callable[[Graph, Problem], float | None]
    sense: int = -1
    bound: str = "length"
    extreme: bool = False


def judge(problem: str, reply: str) -> list[Any]:
    """[right, extracted answer, reason] for a reply to a problem, which is given as JSON."""
    kind, fields, graph = _known(problem)
    try:
        text = answer(reply)
        # a node may itself be named "none"
        if says_none(text) and text not in graph:
            exists = fields.get("solvable") is True or solvable(problem)
            return [not exists, "none", "there is a solution" if exists else "right: there is no solution"]
        solution = kind.read(text, names(graph))
    except Unreadable as fault:
        return [False, "", str(fault)]
    shown = str(solution)[:500]
    if why := kind.fault(graph, solution, fields):
        return [False, shown, why]
    bound = _bound(kind, fields)
    if bound is None and not kind.extreme:
        return [True, shown, "right"]
    # the search for the optimum may take exponential time, so it is the last check
    size, bound = kind.size(graph, solution), _best(problem) if bound is None else bound
    right = bound is not None and _meets(kind, size, bound)
    return [right, shown, f"right: {size:g}" if right else f"{kind.bound} {size:g}, where {bound:g} is required"]


def solvable(problem: str) -> bool:
    """Whether the problem has a solution. Raises ValueError for an invalid problem; may take exponential time."""
    kind, fields, _ = _known(problem)
    best, bound = _best(problem), _bound(kind, fields)
    return best is not None and (bound is None or _meets(kind, best, bound))


@lru_cache(maxsize=256)
def _known(problem: str) -> tuple[Kind, Problem, Graph]:
    fields = json.loads(problem)
    if fields.get("kind") not in KINDS:
        raise ValueError(f"{fields.get('kind')!r} is not a kind of problem; known: {', '.join(KINDS)}")
    graph = read_graph(fields["graph"])
    for end in ("source", "target"):
        if end in fields and str(fields[end]) not in graph:
            raise ValueError(f"the {end} {fields[end]!r} is not a node")
    return KINDS[fields["kind"]], fields, graph


@lru_cache(maxsize=256)
def _best(problem: str) -> float | None:
    kind, fields, graph = _known(problem)
    return kind.best(graph, fields)


def read_graph(data: Mapping[str, Any]) -> Graph:
    """The graph of a problem. Names become text. Of parallel edges the lightest is kept, with their number as `count`."""
    graph = nx.DiGraph() if data.get("directed") else nx.Graph()
    graph.add_nodes_from(str(node) for node in data.get("nodes", ()))
    for u, v, *weights in data["edges"]:
        u, v, weight = str(u), str(v), _number(weights[0]) if weights else 1
        parallel = graph.get_edge_data(u, v, {"weight": weight, "count": 0})
        # a path never takes the heavier of two parallel edges; their count matters to Euler paths
        graph.add_edge(u, v, weight=min(weight, parallel["weight"]), count=parallel["count"] + 1)
    if not graph:
        raise ValueError("the graph has no nodes")
    return graph


def _bound(kind: Kind, problem: Problem) -> float | None:
    bound = problem.get(kind.bound)
    return len(bound) if isinstance(bound, list) else None if bound is None else _number(bound)


def _meets(kind: Kind, size: float, bound: float) -> bool:
    # sums of float weights may differ in the last digits
    return kind.sense * size >= kind.sense * bound - 1e-9 * max(1.0, abs(bound))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return value


def _walk_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    """Why a list of nodes is not a walk from source to target (if the problem has them)."""
    if not said:
        return "no nodes"
    for end, node in (("source", said[0]), ("target", said[-1])):
        if end in problem and str(problem[end]) != node:
            return f"the {end} is {problem[end]}, not {node}"
    return next((f"there is no edge {u} -> {v}" for u, v in pairwise(said) if not graph.has_edge(u, v)), "")


def _path_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    return _repeated(said) or _walk_fault(graph, said, problem)


def _every_node_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    missing = [node for node in graph if node not in set(said)]
    return f"leaves out {missing[0]}" if missing else _path_fault(graph, said, problem)


def _tour_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    """Why a list of nodes is not a tour through all nodes. Repeating the first node at the end is optional."""
    tour = _without_return(said)
    if len(tour) < (2 if graph.is_directed() else 3):
        return "too few nodes for a cycle"
    ends = {key: problem[key] for key in ("source",) if key in problem}
    back = "" if graph.has_edge(tour[-1], tour[0]) else f"there is no edge {tour[-1]} -> {tour[0]}"
    return _every_node_fault(graph, tour, ends) or back


def _order_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    position = {node: i for i, node in enumerate(said)}
    if fault := _repeated(said) or next((f"leaves out {node}" for node in graph if node not in position), ""):
        return fault
    return next((f"{v} comes before {u}" for u, v in graph.edges if position[u] >= position[v]), "")


def _euler_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    def edge(u: str, v: str) -> Any:
        return (u, v) if graph.is_directed() else frozenset((u, v))

    used = Counter(edge(u, v) for u, v in pairwise(said))
    if fault := _walk_fault(graph, said, problem):
        return fault
    if problem["kind"] == "eulerian_circuit" and said[0] != said[-1]:
        return "does not return to its start"
    counts = ((u, v, used[edge(u, v)], count) for u, v, count in graph.edges(data="count"))
    return next((f"takes the edge {u} -> {v} {n} times, not {count}" for u, v, n, count in counts if n != count), "")


def _colour_fault(graph: Graph, said: Mapping[str, str], problem: Problem) -> str:
    if missing := [node for node in graph if node not in said]:
        return f"{missing[0]} has no colour"
    if isinstance(allowed := problem.get("colors"), list):
        known = {str(colour).casefold() for colour in allowed}
        if unknown := [colour for colour in said.values() if colour not in known]:
            return f"{unknown[0]!r} is not one of the colours"
    return next((f"{u} and {v} are adjacent and both {said[u]}" for u, v in graph.edges if said[u] == said[v]), "")


def _matching_fault(graph: Graph, said: Sequence[tuple[str, str]], problem: Problem) -> str:
    return _repeated([node for edge in said for node in edge]) or _edges_fault(graph, said)


def _tree_fault(graph: Graph, said: Sequence[tuple[str, str]], problem: Problem) -> str:
    if fault := _edges_fault(graph, said):
        return fault
    tree = nx.Graph(said)
    # n - 1 distinct edges that touch all n nodes (a single node needs none) form a tree if they are connected
    covered = {*graph} if len(graph) == 1 else set(tree)
    spans = len(said) == tree.number_of_edges() == len(graph) - 1 and covered == {*graph}
    return "" if spans and (not said or nx.is_connected(tree)) else "not a tree that connects all nodes"


def _edges_fault(graph: Graph, said: Sequence[tuple[str, str]]) -> str:
    return next((f"there is no edge {u}-{v}" for u, v in said if not graph.has_edge(u, v)), "")


def _independent_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    chosen = set(said)
    return next((f"{u} and {v} are adjacent" for u, v in graph.edges if u in chosen and v in chosen), "")


def _clique_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    chosen = sorted(set(said))
    return next((f"{u} and {v} are not adjacent" for i, u in enumerate(chosen) for v in chosen[:i] if not graph.has_edge(u, v)), "")


def _cover_fault(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    chosen = set(said)
    return next((f"does not cover {u}-{v}" for u, v in graph.edges if u not in chosen and v not in chosen), "")


def _isomorphism_fault(graph: Graph, said: Mapping[str, str], problem: Problem) -> str:
    return orders.isomorphism(graph, said, problem, read_graph(problem["other"]))


def _isomorphic(graph: Graph, problem: Problem) -> float | None:
    return 0.0 if nx.is_isomorphic(graph, read_graph(problem["other"])) else None


def _repeated(said: Sequence[str]) -> str:
    node, times = Counter(said).most_common(1)[0] if said else ("", 0)
    return f"{node} occurs {times} times" if times > 1 else ""


def _without_return(said: Sequence[str]) -> Sequence[str]:
    """A tour without the repetition of its first node at the end."""
    return said[:-1] if len(said) > 1 and said[0] == said[-1] else said


def _length(graph: Graph, said: Sequence[str]) -> float:
    return sum(graph.edges[edge]["weight"] for edge in pairwise(said))


def _weight(graph: Graph, said: Sequence[tuple[str, str]]) -> float:
    return sum(graph.edges[edge]["weight"] for edge in said)


def _tour_length(graph: Graph, said: Sequence[str]) -> float:
    return _length(graph, [*_without_return(said), said[0]])


def _distinct(graph: Graph, said: Any) -> int:
    return len({*(said.values() if isinstance(said, dict) else said)})


_path = Kind(read_nodes, _path_fault, _length, search.shortest_path)
_tour = Kind(read_nodes, _tour_fault, _tour_length, search.hamiltonian_cycle)
_edges = Kind(read_edges, _matching_fault, lambda _, said: len(said), search.matching, 1, "size")
_tree = Kind(read_edges, _tree_fault, _weight, search.spanning_tree)
_search = Kind(read_edges, orders.breadth_first, lambda _, said: len(said), lambda *_: 0.0)
_set = Kind(read_nodes, _independent_fault, _distinct, search.independent_set, 1, "size", True)
KINDS: dict[str, Kind] = {
    "path": _path,
    "shortest_path": _path._replace(extreme=True),
    "hamiltonian_path": Kind(read_nodes, _every_node_fault, _length, search.hamiltonian_path),
    "hamiltonian_cycle": _tour,
    "tsp_tour": _tour._replace(best=search.shortest_tour, extreme=True),
    "topological_order": Kind(read_nodes, _order_fault, _distinct, search.topological_order),
    "eulerian_path": Kind(read_nodes, _euler_fault, _length, search.eulerian_path),
    "eulerian_circuit": Kind(read_nodes, _euler_fault, _length, search.eulerian_circuit),
    "coloring": Kind(read_colours, _colour_fault, _distinct, search.coloring, -1, "colors", True),
    "matching": _edges,
    "maximum_matching": _edges._replace(extreme=True),
    "perfect_matching": _edges._replace(best=search.perfect_matching, extreme=True),
    "spanning_tree": _tree,
    "minimum_spanning_tree": _tree._replace(extreme=True),
    "independent_set": _set,
    "clique": _set._replace(fault=_clique_fault, best=search.clique),
    "vertex_cover": _set._replace(fault=_cover_fault, best=search.vertex_cover, sense=-1),
    "bfs": _search,
    "dfs": _search._replace(fault=orders.depth_first),
    "dominating_set": Kind(read_nodes, orders.dominating, _distinct, lambda *_: 0.0),
    "maximal_independent_set": Kind(read_nodes, orders.maximal_independent, _distinct, lambda *_: 0.0),
    "edge_cover": Kind(read_edges, orders.edge_cover, lambda _, said: len(said), orders.smallest_edge_cover, -1, "size", True),
    "max_weight_matching": Kind(read_edges, _matching_fault, _weight, orders.heaviest_matching, 1, "weight", True),
    "isomorphism": Kind(read_colours, _isomorphism_fault, _distinct, _isomorphic),
}
