"""A search engine as a tool: over a file of documents, behind an address, or over documents that each problem brings (BM25)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardlab.clients.retriever import Retriever, SearchFailed, is_address, retriever_at
from rewardlab.core import Environment, Message, Problem, Trajectory, Turn, environment
from rewardlab.data.corpus import absolute, corpus_of
from rewardlab.data.embedded import Embedded
from rewardlab.data.values import list_of
from rewardlab.envs.tool_messages import SHOWN, cut
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.bm25 import BM25, index_of
from rewardlab.text.searches import CLOSE, FAILED, answered, failed, queries_of, query_of

State = dict[str, Any]

TELL = (
    "You can search a collection of documents: write a query between <search> and </search>, and what is found will be shown "
    "to you between <information> and </information>. Search as often as you need to. When you know the answer, write it between "
    "<answer> and </answer>."
)
RESULTS = 3
"""Documents of a corpus that a query shows, as Search-R1 has it (Jin et al. 2025, arXiv:2503.09516)."""


def retriever_of(corpus: str) -> BM25 | Embedded | Retriever:
    """What searches a corpus: the address of a search engine (`clients/retriever.py`), or a file (`data/corpus.py`)."""
    return retriever_at(corpus) if is_address(corpus) else corpus_of(corpus)


def _start(
    problem: Problem, seed: int, *, results: int, field: str, corpus: str, tell: str, stop: Sequence[str], separator: str,
    shown: int,
) -> tuple[Message | None, State]:  # fmt: skip
    message = Message("user", tell) if tell else None
    if corpus:
        retriever_of(corpus)
        return message, {}
    documents = list_of(problem.meta.get(field))
    if documents is None:
        raise RewardlabError(
            f"search has no documents to search: problem {problem.question[:60]!r} has no {field!r} in its meta. Name a file of "
            "documents (--corpus FILE: .jsonl, .parquet, .csv or .txt, with title and text), give each row a list of texts in the "
            f"column {field!r}, or bring an environment of your own (--env mine.py:NAME)"
        )
    return message, {"documents": [_titled(document) for document in documents]}


def _failures(episodes: Sequence[Trajectory], *, corpus: str, **_: Any) -> dict[str, float]:
    """failed_searches: of the searches behind an address the share that failed."""
    if not is_address(corpus):
        return {}
    answers = [turn.text for t in episodes for turn in t.turns[1:] if turn.author is None]
    return {"failed_searches": sum(FAILED in text for text in answers) / max(1, len(answers))}


@environment(start=_start, waits=lambda *, corpus, **_: is_address(corpus), logged=_failures)
def search(
    state: State, turn: Turn, *, results: PositiveInt = 1, field: str = "facts", corpus: str = "", tell: str = "",
    stop: tuple[str, ...] = (), separator: str = "", shown: PositiveInt = SHOWN,
) -> tuple[Message | None, State]:  # fmt: skip
    """Answers the first query of a reply, <search>...</search> or a line "Search: ...", with the best `results` documents.

    corpus: a file of documents (`data/corpus.py`), or the address of a search engine, http://host:8000/retrieve (`clients/
    retriever.py`), whose failures are told as such; without one they are those of meta[`field`], texts or {"title", "text"}.
    tell: a message after the prompt, which says how to search.  stop: texts at which replies end.  separator: what stands between
    queries of one call, such as "##": then all queries of a reply are answered together, in their order.  shown: characters of a
    document. A reply without a query is final. Logged: failed_searches, the share that failed of those behind an address.
    """
    if separator:
        queries = queries_of(turn.text, separator=separator)
    else:
        query = query_of(turn.text)
        queries = [] if query is None else [query]
    if not queries:
        return None, state
    try:
        found = candidates(state, corpus, queries, results, shown)
    except SearchFailed as problem:
        return Message("user", failed(turn.text, problem.why)), state
    return Message("user", answered(turn.text, *found)), state


def candidates(state: State, corpus: str, queries: Sequence[str], k: int, shown: int = SHOWN) -> list[list[tuple[str, str]]]:
    """(title, text) of the k best documents of each query, in the corpus, or without one in those that the state holds.

    shown: characters of a title and of a text. Raises SearchFailed as `Retriever.search` does.
    """
    if corpus:
        found = [[(d["title"], d["text"]) for d, _ in best] for best in retriever_of(corpus).search(queries, k)]
    else:
        titles = {text: title for title, text in state["documents"]}
        # a tuple can be hashed: the index of a problem's documents is cached over its rollouts
        own = index_of(tuple(text for _, text in state["documents"]))
        found = [[(titles[text], text) for text in own.best(query, k)] for query in queries]
    return [[(cut(title, shown), cut(text, shown)) for title, text in best] for best in found]


def tools(env: Environment | None = None, corpus: str = "", *, separator: str = "", tell: str = TELL) -> Environment:
    """The environment of a method that searches: `env`, or a search in `corpus`, or in the documents of each problem.

    corpus: a file, or the address of a search engine.  separator, tell: as of `search`; a problem that brings documents says itself
    how they are searched.
    """
    if env is not None and corpus:
        raise RewardlabError("env and corpus both say what is searched: give one of them")
    if not corpus:
        return env or search(separator=separator)
    # a saved recipe finds the file from anywhere
    found = corpus if is_address(corpus) else absolute(corpus)
    return search(corpus=found, results=RESULTS, tell=tell, stop=(CLOSE,), separator=separator)


def _titled(document: Any) -> tuple[str, str]:
    return (str(document.get("title") or ""), str(document.get("text", ""))) if isinstance(document, dict) else ("", str(document))
