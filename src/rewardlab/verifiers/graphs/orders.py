"""Faults of searches, dominating and independent sets, edge covers and isomorphisms: answers of which a graph has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx

Graph = Any
Problem = Mapping[str, Any]
Edges = Sequence[tuple[str, str]]


def breadth_first(graph: Graph, said: Edges, problem: Problem) -> str:
    """Why a list of edges is not a breadth-first search from the source: each leads on from the first node that is not done."""
    return _searched(graph, said, problem, lambda frontier: 0)


def depth_first(graph: Graph, said: Edges, problem: Problem) -> str:
    """Why a list of edges is not a depth-first search from the source: each leads on from the last node that is not done."""
    return _searched(graph, said, problem, lambda frontier: -1)


def _searched(graph: Graph, said: Edges, problem: Problem, following: Any) -> str:
    """following: position in the frontier of the node from which a search goes on."""
    source = str(problem["source"])
    frontier, found = [source], {source}
    for u, v in said:
        if not graph.is_directed() and v in found and u not in found:
            u, v = v, u
        while frontier and frontier[following(frontier)] != u:
            left = frontier.pop(following(frontier))
            if missed := [node for node in graph[left] if node not in found]:
                return f"leaves {left} before {missed[0]} is found"
        if not frontier or not graph.has_edge(u, v) or v in found:
            return f"cannot go on by {u}-{v}"
        found.add(v)
        frontier.append(v)
    missed = sorted({source, *nx.descendants(graph, source)} - found)
    return f"does not reach {missed[0]}" if missed else ""


def dominating(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    chosen = set(said)
    return next((f"{v} is not joined to any of them" for v in graph if v not in chosen and not chosen & {*graph[v]}), "")


def maximal_independent(graph: Graph, said: Sequence[str], problem: Problem) -> str:
    """Why no further node could be taken, or two of the nodes are joined."""
    chosen = set(said)
    if joined := [(u, v) for u, v in graph.edges if u in chosen and v in chosen]:
        return f"{joined[0][0]} and {joined[0][1]} are adjacent"
    return next((f"{v} could be taken too" for v in graph if v not in chosen and not chosen & {*graph[v]}), "")


def edge_cover(graph: Graph, said: Edges, problem: Problem) -> str:
    if strange := [(u, v) for u, v in said if not graph.has_edge(u, v)]:
        return f"there is no edge {strange[0][0]}-{strange[0][1]}"
    covered = {node for edge in said for node in edge}
    return next((f"no edge at {node}" for node in graph if node not in covered), "")


def smallest_edge_cover(graph: Graph, problem: Problem) -> float | None:
    return None if nx.number_of_isolates(graph) else float(len(nx.min_edge_cover(graph)))


def heaviest_matching(graph: Graph, problem: Problem) -> float:
    return float(sum(graph.edges[edge]["weight"] for edge in nx.max_weight_matching(graph)))


def isomorphism(graph: Graph, said: Mapping[str, str], problem: Problem, other: Graph) -> str:
    """Why a mapping of the nodes to those of another graph does not keep what is joined."""
    # what follows a colon is read in lower case, as colours are
    names = {node.casefold(): node for node in other}
    said = {node: names.get(image.casefold(), image) for node, image in said.items()}
    if set(said) != set(graph) or sorted(said.values()) != sorted(other):
        return "not every node of one graph has a node of the other"
    pairs = ((u, v) for u in graph for v in graph)
    return next((f"{u} and {v} differ" for u, v in pairs if graph.has_edge(u, v) != other.has_edge(said[u], said[v])), "")
