"""The verifier of graph problems, which may have several right answers."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from typing import Any

from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.replies import data
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

JUDGE = "rewardlab.verifiers.graphs.checks:judge"
SOLVABLE = "rewardlab.verifiers.graphs.checks:solvable"
MOST = 1_000_000
"""Characters of a reply that are read."""


@verifier(over="pairs", modules=("networkx",))
def graph_solution(pairs: list[Pair], *, seconds: PositiveFloat = 5.0) -> list[Verdict]:
    """Right if the reply solves the graph problem in the gold answer. Checked by algorithm (networkx), never against one solution.

    answer: {"kind": ..., "graph": {"nodes": [...], "edges": [[u, v] or [u, v, weight], ...], "directed": bool}, ...}, as data
    or JSON text. The kinds, and their further keys:

        path, shortest_path                           source, target; length: at most this
        hamiltonian_path, hamiltonian_cycle           source, target
        tsp_tour                                      length: at most this; else the shortest, for up to 14 nodes
        topological_order, eulerian_path, eulerian_circuit
        coloring                                      colors: the most allowed, or their names; else the fewest
        matching, maximum_matching, perfect_matching  size: at least this many edges
        spanning_tree, minimum_spanning_tree          length: at most this
        independent_set, clique, vertex_cover         size: at least (a cover: at most) this; else the optimum
        edge_cover, max_weight_matching               size: at most this many edges; weight: at least this
        dominating_set, maximal_independent_set       any that is one, however large
        bfs, dfs                                      source; the edges by which each node is found, in their order
        isomorphism                                   other: the graph whose nodes are wanted, {node: its node}

    The right answer to a problem without a solution is "none"; "solvable": true saves the search if it is known to have one.
    seconds: time limit for one reply. A problem that exceeds it even without a reply gets no verdict.
    """
    if importlib.util.find_spec("networkx") is None:
        return [no_verdict("graphs need the package networkx: pip install 'rewardlab[verify]'")] * len(pairs)
    problems = [_problem(pair.answer) for pair in pairs]
    calls = [(problem, pair.response[:MOST]) for problem, pair in zip(problems, pairs, strict=True) if problem is not None]
    judged_results = iter(workers(JUDGE, seconds=seconds).map(calls))
    results = [None if problem is None else next(judged_results) for problem in problems]
    # a worker that failed: try the problem without the reply, to see whether the reply is to blame
    failed = {problem for problem, result in zip(problems, results, strict=True) if isinstance(result, Failed)}
    faults = _reasons_without_reply(sorted(problem for problem in failed if problem), seconds)
    return [_verdict(result, faults.get(problem or "")) for problem, result in zip(problems, results, strict=True)]


def _problem(answer: Any) -> str | None:
    """The problem as JSON text; None if the gold answer is not one."""
    try:
        problem = data(answer)
        return json.dumps(problem, sort_keys=True, allow_nan=False) if isinstance(problem, Mapping) else None
    except (ValueError, TypeError):
        return None


def _reasons_without_reply(problems: list[str], seconds: float) -> dict[str, str]:
    """Reasons for the problems that fail even without a reply: then the reply is not to blame."""
    results = workers(SOLVABLE, seconds=seconds).map([(problem,) for problem in problems])
    return {problem: result.why for problem, result in zip(problems, results, strict=True) if isinstance(result, Failed)}


def _verdict(result: Any, fault: str | None) -> Verdict:
    if result is None:
        return no_verdict("the gold answer is not a graph problem")
    if isinstance(result, Done):
        correct, extracted, why = result.value
        return right(extracted, why) if correct else wrong(why, extracted)
    return (
        no_verdict(f"the problem itself cannot be judged: {fault}")
        if fault
        else wrong(f"the reply could not be judged: {result.why}")
    )
