"""BM25 ranks documents by the rare words that they share with a query.

    score(d) = sum over words w of the query:  idf(w) tf / (tf + k1 (1 - b + b |d| / mean |d|)),    k1 = 1.2,  b = 0.75
    idf(w) = log(1 + (N - n(w) + 1/2) / (n(w) + 1/2)),   n(w): number of documents that contain w

Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond". The idf is Lucene's, which is never negative.
The scores are computed by bm25s (Lù 2024, arXiv:2407.03618). In scripts without spaces, where a sentence would be one word, every
two neighbouring characters are a word, as in Lucene's CJKAnalyzer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .words import UNSPACED

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_RUN = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]+")


def words(text: str, characters: bool = False) -> list[str]:
    """The words of a text in lower case, and the pairs of neighbouring characters of scripts without spaces.

    characters: those of the pairs too, for documents, since a query may be a single one.
    """
    text = text.lower()
    # most texts have none of these, and are divided in half the time
    if not _UNSPACED.search(text):
        return _WORD.findall(text)
    return [word for run in _RUN.findall(text) for word in _words_of(run, characters)]


def _words_of(run: str, characters: bool) -> list[str]:
    if len(run) == 1 or not _UNSPACED.match(run):
        return [run]
    return [*map("".join, pairwise(run)), *(run if characters else ())]


class BM25:
    """An index of documents.  texts: what is searched of each of them, where the documents are no texts."""

    def __init__(self, documents: Sequence[Any], texts: Sequence[str] | None = None):
        import bm25s
        from bm25s.tokenization import Tokenized

        self.documents, self._engine = documents, bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        vocabulary: dict[str, int] = {}
        split = (words(text, characters=True) for text in texts or documents)
        found = [[vocabulary.setdefault(word, len(vocabulary)) for word in own] for own in split]
        # a copy, to which the engine adds nothing
        self._words = dict(vocabulary)
        # without a word in any document there is nothing to index
        if vocabulary:
            self._engine.index(Tokenized(found, vocabulary), show_progress=False)

    @classmethod
    def load(cls, folder: Path) -> BM25:
        """The index that was saved in a folder; its arrays and documents stay on disk until they are read."""
        import bm25s

        index = cls.__new__(cls)
        index._engine = bm25s.BM25.load(folder, load_corpus=True, mmap=True)
        index.documents, index._words = index._engine.corpus, index._engine.vocab_dict
        return index

    def save(self, folder: Path) -> None:
        """Write the index and its documents (objects of JSON) to a folder."""
        self._engine.save(folder, corpus=self.documents, show_progress=False)

    def scores(self, query: str) -> np.ndarray:
        """(N,) the score of every document; 0 where it shares no word with the query."""
        known = [word for word in words(query) if word in self._words]
        return self._engine.get_scores(known) if known else np.zeros(len(self.documents))

    def best(self, query: str, k: int = 1) -> list[Any]:
        """The k best documents, best first, ties in document order. Fewer than k if fewer share a word with the query."""
        return [document for document, _ in self.search([query], k)[0]]

    def search(self, queries: Sequence[str], k: int = 1) -> list[list[tuple[Any, float]]]:
        """For each query the documents of `best`, with their scores."""
        return [[(self.documents[i], score) for i, score in top(self.scores(query), k, above=0.0)] for query in queries]


def top(scores: np.ndarray, k: int, above: float = -np.inf) -> list[tuple[int, float]]:
    """(place, score) of the k highest scores above `above`, the highest first, ties in their order."""
    k = min(k, len(scores))
    if not k:
        return []
    found = np.flatnonzero((scores >= np.partition(scores, -k)[-k]) & (scores > above))
    return [(int(i), float(scores[i])) for i in found[np.argsort(-scores[found], kind="stable")][:k]]


@lru_cache(maxsize=512)
def index_of(documents: tuple[str, ...]) -> BM25:
    """The index of these documents, cached for the next query."""
    return BM25(documents)
