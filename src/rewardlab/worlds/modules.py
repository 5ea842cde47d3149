"""Graphs with a planted module of high-valued, connected nodes, to be found from its seed. From its seed the rest of it is to be
found.

    seed C                        F
    A2 B7 C8 D1 E3 F9 G6          B
    AB AC BF CF CG DE ...         G

Numbers are noisy, and some nodes far from the module have high ones too, so that neither number nor edges alone tell. The graph
is in the columns `nodes` (name to features), `edges` (pairs of names) and `seed`; the module, with its seed, in `module`. What a
graph network may learn from is of another kind: `label` says that this sample is a case, and `samples` holds a control on the same
graph, in whose module the numbers are as low as elsewhere.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Score, Task, Trajectory, ask, seed_of
from rewardlab.data.values import list_of, map_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.named import added, bare, visible

NAMES = "ABCDEFGHIJKL"
INSIDE, OUTSIDE = (5, 9), (0, 5)
DECOYS = 2
"""Nodes outside of the module with numbers as high as inside."""


def modules(
    *, nodes: PositiveInt = 9, members: PositiveInt = 4, chords: Share = 0.25, careful: Share = 0.45, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Graphs of so many `nodes`, with a module of `members`.

    chords: how often two nodes that no other rule joins are joined.  careful: how often the teacher of `demonstrate` adds a
    neighbour with a high number; else it adds any node.  size: so many training problems, in epochs; None: endless.
    """
    if not 2 <= members <= nodes - DECOYS or nodes > len(NAMES):
        raise RewardlabError(f"modules: nodes at most {len(NAMES)}, and {DECOYS} more than members, not {nodes} and {members}")
    sample, key = partial(_sample, nodes=nodes, members=members, chords=chords), ("modules", nodes, members, chords)
    return Task(
        name="modules",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="module_f1",
        max_new=4 * nodes,
        about=f"a module of {members} nodes to be found in graphs of {nodes}",
        demonstrate=partial(_demonstrate, careful=careful),
        columns=("prompt", "answer", "nodes", "edges", "seed", "module", "label", "samples", "solution"),
    )


def joined(edges: Any) -> dict[str, set[str]]:
    """The neighbours of every node that has any."""
    found: dict[str, set[str]] = {}
    for a, b in edges:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return found


def _sample(rng: random.Random, *, nodes: int, members: int, chords: float) -> Problem:
    names = list(NAMES[:nodes])
    module = rng.sample(names, members)
    others = [x for x in names if x not in module]
    decoys = rng.sample(others, DECOYS)
    numbers = {x: rng.randint(*(INSIDE if x in module or x in decoys else OUTSIDE)) for x in names}
    # the module is a tree with one edge more; others hang on nodes that come before them
    edges = {tuple(sorted((module[i], rng.choice(module[:i])))) for i in range(1, members)}
    edges.add(tuple(sorted(rng.sample(module, 2))))
    order = [*module, *others]
    for i, x in enumerate(order[members:], members):
        # a decoy hangs on no node of the module
        edges.add(tuple(sorted((x, rng.choice([y for y in order[:i] if not (x in decoys and y in module)] or order[:1])))))
    free = [
        (a, b) for i, a in enumerate(names) for b in names[i + 1 :] if (a in module) != (b in module) and not {a, b} & set(decoys)
    ]
    edges |= {pair for pair in free if rng.random() < chords / 2}
    listed = [list(e) for e in sorted(edges)]
    seed = module[0]
    shown = f"seed {seed}\n{' '.join(f'{x}{numbers[x]}' for x in names)}\n{' '.join(a + b for a, b in listed)}"
    features = {x: [numbers[x] / 9] for x in names}
    gold = _grown(seed, module, joined(listed))
    # a stream of its own, so that the graphs do not hang on it
    other = random.Random(seed_of("modules", "control", shown))
    control = {x: [other.randint(*(INSIDE if x in decoys else OUTSIDE)) / 9] for x in names}
    return ask(
        shown, " ".join(sorted(module)), nodes=features, edges=listed, seed=seed, module=sorted(module), label="case",
        samples=[{"label": "control", "nodes": control}], solution="\n".join(gold),
    )  # fmt: skip


def _grown(seed: str, module: list[str], near: dict[str, set[str]]) -> list[str]:
    """The rest of the module, each node joined to one before it."""
    have, left = [seed], [x for x in module if x != seed]
    while left:
        new = next(x for x in left if near[x] & set(have))
        have.append(new)
        left.remove(new)
    return have[1:]


def _demonstrate(problem: Problem, rng: random.Random, *, careful: float) -> str:
    meta, near = problem.meta, joined(problem.meta["edges"])
    have = [meta["seed"]]
    for _ in range(len(meta["module"]) - 1):
        left = [x for x in meta["nodes"] if x not in have]
        around = [x for x in left if near.get(x, set()) & set(have)]
        high = max(around, key=lambda x: meta["nodes"][x][0], default=left[0])
        have.append(high if rng.random() < careful else rng.choice(left))
    return "\n".join(have[1:])


# ---- How much of a module was found ----------------------------------------------------------------------------------


@reward
def module_f1(trajectory: Trajectory) -> Score:
    """The F1 of the nodes that a reply names, one a line, against the column `module`, without the seed that the question names.

    Lists and sentences are read as models write them (`text/named.py`). A line of one word that is no node is a wrong one; a line
    of several that names none says nothing.
    """
    meta = trajectory.problem.meta
    module, seed, known = list_of(meta.get("module")), str(meta.get("seed", "")), map_of(meta.get("nodes")) or {}
    if not module:
        return Score(None, why="the problem has no module")
    wanted, named = set(module) - {seed}, list[str]()
    for line in visible(trajectory.reply.splitlines()):
        found = added(line, {*known, *module}, [seed, *named])
        word = bare(line)
        named += found or ([word] if word and " " not in word and not line.rstrip(" *_").endswith(":") else [])
    said = set(named) - {seed}
    hits = len(said & wanted)
    return Score(2 * hits / (len(said) + len(wanted)), why=f"{hits} of {len(wanted)} nodes, {len(said)} named")
