"""Questions about small graphs: the 50 tasks of Erdos, in four tiers, with another way to write edges kept for the test.

    Nodes 1 to 5. Edges: 3-1, 1-2, 4-1, 5-4. Which are the neighbours of 1?        Answer: 2, 3, 4

Graphs are parts of real networks. Answers are made by networkx, and judged by kind: numbers and yes or no exactly, sets by how
much they share, and where several answers are right by an algorithm (`graph_answer`).

After Guo et al. 2025, arXiv:2505.18499; tasks, tiers and ways of judging follow the released reward (shenyangHuang/G1, a copy of
PKU-ML/G1, 3496707). The words of the questions and the networks are our own: theirs come from the Network Repository.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.util import extras

Encoding = Literal["edges", "pairs", "adjacency", "sentences"]
Names = str | tuple[str, ...]
READING = ("neighbor", "degree", "common_neighbor", "edge_existence")
"""Tasks whose worked solutions read the neighbours of the nodes in question first."""
MOST_NODES = 8


def erdos(
    *, tasks: Names = (), unseen: Names = (), encoding: Encoding = "edges", unseen_encoding: Encoding | None = None,
    nodes: tuple[int, int] = (5, 7), biased: Share = 0.65, error: Share = 0.1, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Questions of one or several kinds.

    tasks: names of tasks or of tiers (easy, medium, hard, challenging), or reading for four that a small policy learns; all where
    none is given.  unseen: tasks to test on in their place, which are then not trained on.  encoding: how edges are written:
    `1-2`, `(1, 2)`, each node with its neighbours, or in sentences; unseen_encoding: of the test's.  nodes: lowest and highest
    number.  biased: how often the teacher of `demonstrate` overlooks the edges that name a node second.  error: how often
    it makes another slip.  size: so many training problems, in epochs; None: endless.
    """
    extras.require("verify", "networkx", what="the task erdos")
    chosen, held, (low, high) = _tasks(tasks), _tasks(unseen) if unseen else (), _bounds(nodes)
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"erdos: {name} is a probability between 0 and 1, not {share}")
    _check_encodings(encoding, unseen_encoding or encoding)
    if held and not (chosen := tuple(task for task in chosen if task not in held)):
        raise RewardlabError("erdos: no task is left to train on: all of them are among the unseen")
    tested_on = f", tested on {len(held)} others" if held else ""
    key = ("erdos", low, high)
    seen = partial(_sample, tasks=chosen, encoding=encoding, low=low, high=high)
    tested = partial(_sample, tasks=held or chosen, encoding=unseen_encoding or encoding, low=low, high=high)
    return Task(
        name="erdos",
        train=training(seen, (*key, *chosen, encoding), size),
        test=test_set(tested, (*key, *(held or chosen), unseen_encoding or encoding), test_size),
        verifier="graph_answer",
        # two lists of neighbours and a third of them, with a space or a comma between any two
        max_new=8 * high if {*chosen, *held} <= {*READING} else 96,
        about=f"{len(chosen)} kinds of questions about graphs of {low} to {high} nodes{tested_on}",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        warmup_steps=1200,
        columns=("prompt", "answer", "task", "tier", "edges", "about", "solution"),
        # one policy that knows all of these tasks, so that those that are not trained on can be answered too
        warmed_as=_warmed({*chosen, *held}, encoding, (low, high), biased, error),
    )  # fmt: skip


def _check_encodings(*encodings: str) -> None:
    for wanted in encodings:
        if wanted not in get_args(Encoding):
            raise unknown("encoding of a graph", wanted, get_args(Encoding))


def _warmed(names: set[str], encoding: str, nodes: Sequence[int], biased: float, error: float) -> str:
    listed = "reading" if names == {*READING} else json.dumps(sorted(names), separators=(",", ":"))
    return f"erdos:tasks={listed},encoding={encoding},nodes=[{nodes[0]},{nodes[1]}],biased={biased},error={error}"


def _tasks(names: Names) -> tuple[str, ...]:
    from .kinds import KINDS, TIERS

    named = (names,) if isinstance(names, str) else tuple(names)
    groups = {"reading": READING, **{tier: tuple(k for k, kind in KINDS.items() if kind.tier == tier) for tier in TIERS}}
    found = [task for name in named for task in groups.get(name, (name,))] or list(KINDS)
    for task in found:
        if task not in KINDS:
            raise unknown("task on graphs", task, [*KINDS, *groups])
    return tuple(dict.fromkeys(found))


def _bounds(nodes: Any) -> tuple[int, int]:
    match nodes:
        case [int() as low, int() as high] if 4 <= low <= high <= MOST_NODES:
            return low, high
    raise RewardlabError(f"erdos: nodes is (lowest, highest), between 4 and {MOST_NODES}, not {nodes}")


def _sample(rng: random.Random, *, tasks: Sequence[str], encoding: str, low: int, high: int) -> Problem:
    from .kinds import KINDS
    from .sampling import part, rebuilt

    task = rng.choice(tasks)
    kind = KINDS[task]
    graph = kind.graph(rng, part(rng, low, high))
    u, v = _asked(rng, graph, task)
    directed = graph.is_directed()
    edges = [[*edge, *filter(None, [w])] for *edge, w in graph.edges(data="weight")]
    rng.shuffle(edges)
    # either end may stand first, so that the order tells nothing
    edges = [edge if directed or rng.random() < 0.5 else [edge[1], edge[0], *edge[2:]] for edge in edges]
    data = {"nodes": sorted(graph), "edges": edges, "directed": directed}
    shown = write(data, encoding)
    if task == "isomophic_mapping":
        names = dict(zip(sorted(graph), rng.sample(range(101, 101 + len(graph)), len(graph)), strict=True))
        other = rebuilt(names.values(), [(names[a], names[b]) for a, b in graph.edges])
        data["other"] = {"nodes": sorted(other), "edges": [list(edge) for edge in other.edges], "directed": False}
        shown, found = f"{shown} Other graph: {write(data['other'], encoding)}", names
    else:
        found = kind.answer(graph, u, v)
    question = kind.asks.format(u=u, v=v)
    answer = _gold(kind.checked, data, found, [u, v][: kind.nodes])
    solution = _solved(task, [[u, v][i] for i in range(kind.nodes)], edges, found)
    return ask(
        f"{shown} {question}", answer, task=task, tier=kind.tier, edges=edges, about=[u, v][: kind.nodes], solution=solution
    )  # fmt: skip


def _asked(rng: random.Random, graph: Any, task: str) -> tuple[int, int]:
    """Two nodes; of those that may be joined, half of the time such that are, and for paths always such that can be reached."""
    u, v = rng.sample(sorted(graph), 2)
    if task == "edge_existence" and rng.random() < 0.5:
        u, v = rng.choice(list(graph.edges))
    return (u, v) if rng.random() < 0.5 else (v, u)


def _gold(checked: str, data: Mapping[str, Any], found: Any, about: Sequence[int]) -> dict[str, Any]:
    if checked:
        ends = dict(zip(("source", "target"), about, strict=False))
        other = {"other": data["other"]} if "other" in data else {}
        graph = {name: data[name] for name in ("nodes", "edges", "directed")}
        return {"kind": checked, "graph": graph, "solvable": True, **ends, **other}
    if not isinstance(found, list):
        return {"value": found}
    return {"pairs": found, "nodes": data["nodes"]} if found and isinstance(found[0], list) else {"items": found}


def write(graph: Mapping[str, Any], encoding: str) -> str:
    """A graph in words: its nodes and its edges, with weights where there are any."""
    sign, nodes = ">" if graph["directed"] else "-", graph["nodes"]
    weights = [f" {edge[2]}" if len(edge) > 2 else "" for edge in graph["edges"]]
    rows = list(zip(graph["edges"], weights, strict=True))
    if encoding == "adjacency":
        both = [*rows, *([] if graph["directed"] else [([v, u, *rest], w) for (u, v, *rest), w in rows])]
        lists = [f"{n}: {', '.join(f'{e[1]}{w}' for e, w in both if e[0] == n) or 'none'}" for n in nodes]
        return f"{'; '.join(lists)}."
    verb = "points" if graph["directed"] else "is joined"
    shown = {
        "edges": ", ".join(f"{e[0]}{sign}{e[1]}{w}" for e, w in rows),
        "pairs": ", ".join(f"({e[0]}, {e[1]}{',' + w if w else ''})" for e, w in rows),
        "sentences": ". ".join(f"{e[0]} {verb} to {e[1]}{' by' + w if w else ''}" for e, w in rows),
    }[encoding]  # fmt: skip
    return f"Nodes {nodes[0]} to {nodes[-1]}. Edges: {shown}."


def _neighbours(edges: Sequence[Sequence[int]], node: int, overlooks: bool = False) -> list[int]:
    """overlooks: the edges that name the node second."""
    return sorted([v for u, v in edges if u == node] + [u for u, v in edges if v == node and not overlooks])


def _solved(task: str, about: Sequence[int], edges: Sequence[Sequence[int]], found: Any) -> str:
    if task in READING:
        return _read(task, about, [_neighbours(edges, node) for node in about])
    if isinstance(found, bool):
        return f"Answer: {'yes' if found else 'no'}"
    if isinstance(found, float):
        return f"Answer: {found:.4f}"
    if isinstance(found, dict):
        return "Answer: " + ", ".join(f"{a}: {b}" for a, b in found.items())
    if isinstance(found, list):
        return "Answer: " + (", ".join("-".join(map(str, x)) if isinstance(x, list) else str(x) for x in found) or "none")
    return f"Answer: {found}"


def _read(task: str, about: Sequence[int], neighbours: Sequence[Sequence[int]]) -> str:
    """A worked solution: the neighbours of each node in question, then what follows from them."""
    first = neighbours[0]
    shown = {
        "neighbor": lambda: first,
        "degree": lambda: [len(first)],
        "common_neighbor": lambda: [n for n in first if n in neighbours[1]],
        "edge_existence": lambda: ["yes" if about[1] in first else "no"],
    }[task]()
    lines = [f"{node}: {' '.join(map(str, row))}" for node, row in zip(about, neighbours, strict=True)]
    return "\n".join([*lines, f"Answer: {', '.join(map(str, shown)) or 'none'}"])


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    """A worked solution in which edges may be overlooked; of other tasks the answer, or with a slip its last digit one higher."""
    task, about, edges = problem.meta["task"], problem.meta["about"], problem.meta["edges"]
    if task not in READING:
        text = problem.meta["solution"]
        return text[:-1] + str((int(text[-1]) + 1) % 10) if rng.random() < error and text[-1].isdigit() else text
    found = [_neighbours(edges, node, rng.random() < biased) for node in about]
    if rng.random() < error and found[0]:
        found[0].remove(rng.choice(found[0]))
    return _read(task, about, found)
