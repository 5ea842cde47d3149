"""A knowledge graph as an environment: what is around an entity is shown, and what matters of it is chosen.

    <explore>Ann</explore>      ->   Ann | friend | Bob
                                     Cal | boss | Ann
    <choose>friend</choose>     ->   Ann | friend | Bob
    <answer>Bob</answer>

Chang et al. 2025, arXiv:2508.05498
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rewardlab.core import Environment, Message, Problem, Turn, environment
from rewardlab.data.files import read
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.answers import after_thinking, tidy

Triple = tuple[str, str, str]
Action = tuple[str, tuple[str, ...]]
"""What is done, and with which entity or relations."""
TELL = (
    "Explore a knowledge graph to answer the question. One action a reply: <explore>entity</explore> shows all triples around it, "
    "<choose>relation; relation</choose> keeps those of the last ones that matter, <answer>...</answer> answers. Think first. "
    "Start from: {entities}"
)
STOP = ("</explore>", "</choose>", "</answer>")
_ACTION = re.compile(r"<(explore|choose|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)


def graph_of(problem: Problem, graph: str) -> dict[str, list[Triple]]:
    """The triples around each entity, by its name as compared."""
    return _file(_resolved(graph)) if graph else around(_triples(list_of(problem.meta.get("triples")), problem))


def _resolved(graph: str) -> str:
    return str(Path(graph).expanduser().resolve())


def _triples(rows: list[Any] | None, problem: Problem) -> tuple[Triple, ...]:
    if not rows or not all(isinstance(t, list | tuple) and len(t) == 3 for t in rows):
        raise RewardlabError(
            f"a knowledge graph is made of triples: problem {problem.question[:60]!r} has no list of [head, relation, tail] in its "
            "column 'triples'; name a file with --graph FILE"
        )
    return tuple((str(h), str(r), str(t)) for h, r, t in rows)


@lru_cache(maxsize=256)
def around(triples: tuple[Triple, ...]) -> dict[str, list[Triple]]:
    """The triples around each entity."""
    found: dict[str, list[Triple]] = {}
    for triple in triples:
        for entity in dict.fromkeys((tidy(triple[0]), tidy(triple[2]))):
            found.setdefault(entity, []).append(triple)
    return found


def _file(path: str) -> dict[str, list[Triple]]:
    if not Path(path).is_file():
        raise RewardlabError(f"the graph {path} is no file: name a .tsv of head, relation and tail, or rows with these columns")
    state = Path(path).stat()
    return _read(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: str, size: int, changed: int) -> dict[str, list[Triple]]:
    if path.endswith((".tsv", ".txt")):
        rows: list[list[Any]] = [line.split("\t") for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
    else:
        rows = [[(e.row or {}).get(k) for k in ("head", "relation", "tail")] for e in read(path) if not e.blank]
    if wrong := next((n for n, row in enumerate(rows, 1) if len(row) != 3 or None in row), 0):
        raise RewardlabError(f"row {wrong} of the graph {path} is no triple of head, relation and tail")
    return around(tuple((str(h), str(r), str(t)) for h, r, t in rows))


def action_in(text: str) -> Action | None:
    """The first action of a reply, after its thinking."""
    found = _ACTION.search(after_thinking(text))
    if not found:
        return None
    parts = re.split(r"[;\n]", found[2]) if found[1] == "choose" else [found[2]]
    return found[1], tuple(part.strip() for part in parts if part.strip())


def _start(problem: Problem, seed: int, *, graph: str, tell: str, **_: Any) -> tuple[Message | None, dict[str, Any]]:
    entities = starts_of(problem)
    # what is read of it now is wrong now, and not after the model has begun
    own = None if graph else [list(t) for t in _triples(list_of(problem.meta.get("triples")), problem)]
    if graph:
        _file(_resolved(graph))
    return Message("user", tell.replace("{entities}", ", ".join(entities))) if tell else None, {"triples": own, "last": []}


@environment(start=_start)
def knowledge_graph(
    state: dict[str, Any], turn: Turn, *, graph: str = "", tell: str = TELL, most: PositiveInt = 40, stop: tuple[str, ...] = STOP
) -> tuple[Message | None, dict[str, Any]]:
    """A knowledge graph that shows what is around an entity (`most` triples of it), and keeps what is chosen of that.

    graph: a file; without one, the row's triples.  tell: the message after the prompt, with {entities}.  A reply that answers is
    the last, and so is one without an action.
    """
    action = action_in(turn.text)
    if action is None or action[0] == "answer":
        return None, state
    if action[0] == "choose":
        chosen = {tidy(r) for r in action[1]}
        kept = [t for t in state["last"] if tidy(t[1]) in chosen]
        return Message("user", shown(kept) or "None of them."), state
    near = _file(_resolved(graph)) if graph else around(tuple((h, r, t) for h, r, t in state["triples"]))
    found = near.get(tidy(action[1][0]) if action[1] else "", [])[:most]
    return Message("user", shown(found) or "Nothing is known of it."), {**state, "last": [list(t) for t in found]}


def knows(env: Environment | None, graph: str) -> Environment:
    """The environment of a method that explores a graph: `env`, or the graph in this file, or that of each row."""
    if env is not None and graph:
        raise RewardlabError("env and graph both say what is explored: give one of them")
    # a saved recipe finds the file from anywhere
    return env or knowledge_graph(graph=_resolved(graph) if graph else "")


def shown(triples: Sequence[Sequence[str]]) -> str:
    return "\n".join(" | ".join(t) for t in triples)


def starts_of(problem: Problem) -> list[str]:
    problem.required("entities", by="knowledge_graph")
    return [str(e) for e in list_of(problem.meta["entities"]) or [problem.meta["entities"]]]
