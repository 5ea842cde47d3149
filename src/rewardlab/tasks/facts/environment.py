"""A search engine over the documents of a problem, as a tool that a policy calls by lines "Search: ..."."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.text.bm25 import index_of

State = dict[str, Any]

ASK, NOTHING = "Search:", "Nothing found."


def _start(problem: Problem, seed: int, *, results: int, field: str) -> tuple[Message | None, State]:
    if field not in problem.meta:
        raise RewardlabError(f"search has no documents to search: problem {problem.question[:60]!r} has no {field!r} in its meta")
    return None, {"documents": list(problem.meta[field])}


@environment(start=_start)
def search(state: State, turn: Turn, *, results: PositiveInt = 1, field: str = "facts") -> tuple[Message | None, State]:
    """Answers the first line "Search: ..." of a reply with the best `results` documents of meta[`field`], by BM25.

    A reply without such a line is taken as final.
    """
    query = next((line.removeprefix(ASK) for line in turn.text.splitlines() if line.startswith(ASK)), None)
    if query is None:
        return None, state
    # a tuple can be hashed: the index of a problem's documents is cached over its rollouts
    best = index_of(tuple(state["documents"])).best(query, results)
    return Message("user", " ".join(best) or NOTHING), state
