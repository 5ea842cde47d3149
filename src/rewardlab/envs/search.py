"""A search engine as a tool: over a file of documents, or over documents that each problem brings (BM25)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.core import Environment, Message, Problem, Turn, environment
from rewardlab.data.corpus import corpus_of
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.bm25 import index_of
from rewardlab.text.searches import CLOSE, answered, query_of

State = dict[str, Any]

TELL = (
    "You can search a collection of documents: write a query between <search> and </search>, and what is found will be shown "
    "to you between <information> and </information>. Search as often as you need to. When you know the answer, write it between "
    "<answer> and </answer>."
)
SHOWN = 3
"""Documents of a file that a query shows, as Search-R1 has it (Jin et al. 2025, arXiv:2503.09516)."""


def _start(
    problem: Problem, seed: int, *, results: int, field: str, corpus: str, tell: str, stop: Sequence[str]
) -> tuple[Message | None, State]:
    message = Message("user", tell) if tell else None
    if corpus:
        corpus_of(corpus)
        return message, {}
    documents = list_of(problem.meta.get(field))
    if documents is None:
        raise RewardlabError(
            f"search has no documents to search: problem {problem.question[:60]!r} has no {field!r} in its meta. Name a file of "
            "documents (--corpus FILE: .jsonl, .parquet, .csv or .txt, with title and text), give each row a list of texts in the "
            f"column {field!r}, or bring an environment of your own (--env mine.py:NAME)"
        )
    return message, {"documents": [_titled(document) for document in documents]}


@environment(start=_start)
def search(
    state: State, turn: Turn, *, results: PositiveInt = 1, field: str = "facts", corpus: str = "", tell: str = "",
    stop: tuple[str, ...] = (),
) -> tuple[Message | None, State]:  # fmt: skip
    """Answers the first query of a reply, <search>...</search> or a line "Search: ...", with the best `results` documents.

    corpus: a file of documents (`data/corpus.py`); without one they are those of meta[`field`], texts or {"title", "text"}.
    tell: a message after the prompt, which says how to search.  stop: texts at which replies end. A reply without a query is final.
    """
    query = query_of(turn.text)
    if query is None:
        return None, state
    if corpus:
        found = [(d["title"], d["text"]) for d in corpus_of(corpus).best(query, results)]
    else:
        # a tuple can be hashed: the index of a problem's documents is cached over its rollouts
        titles = {text: title for title, text in state["documents"]}
        found = [(titles[text], text) for text in index_of(tuple(text for _, text in state["documents"])).best(query, results)]
    return Message("user", answered(turn.text, found)), state


def tools(env: Environment | None = None, corpus: str = "") -> Environment:
    """The environment of a method that searches: `env`, or a search in the file `corpus`, or in the documents of each problem."""
    if env is not None and corpus:
        raise RewardlabError("env and corpus both say what is searched: give one of them")
    if not corpus:
        return env or search()
    # a saved recipe finds the file from anywhere
    return search(corpus=str(Path(corpus).expanduser().resolve()), results=SHOWN, tell=TELL, stop=(CLOSE,))


def _titled(document: Any) -> tuple[str, str]:
    return (str(document.get("title") or ""), str(document.get("text", ""))) if isinstance(document, dict) else ("", str(document))
