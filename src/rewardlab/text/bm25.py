"""BM25 ranks documents by the rare words that they share with a query.

    score(d) = sum over words w of the query:  idf(w) tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|))
    idf(w) = log(1 + (N - n(w) + 1/2) / (n(w) + 1/2)),   n(w): number of documents that contain w

Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond". The idf is Lucene's, which is never negative.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class BM25:
    """An index of documents. k1: how fast the weight of repeated words saturates.  b: how strongly long documents are penalised."""

    def __init__(self, documents: Sequence[str], k1: float = 1.2, b: float = 0.75):
        self.documents, self.k1, self.b = documents, k1, b
        counts = [Counter(words(d)) for d in documents]
        self.length = [sum(c.values()) for c in counts]
        self.mean = sum(self.length) / max(1, len(documents))
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, count in enumerate(counts):
            for word, n in count.items():
                self.postings[word].append((i, n))

    def scores(self, query: str) -> dict[int, float]:
        """The score of every document that shares a word with the query, by document index."""
        scores: dict[int, float] = defaultdict(float)
        for word in words(query):
            postings = self.postings.get(word, ())
            # 1 + keeps it positive for words that most documents contain
            idf = math.log(1 + (len(self.documents) - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, tf in postings:
                relative = self.length[i] / self.mean
                scores[i] += idf * tf * (self.k1 + 1) / (tf + self.k1 * (1 - self.b + self.b * relative))
        return dict(scores)

    def best(self, query: str, k: int = 1) -> list[str]:
        """The k best documents, best first, ties in document order. Fewer than k if fewer share a word with the query."""
        scores = self.scores(query)
        return [self.documents[i] for i in sorted(scores, key=lambda i: (-scores[i], i))[:k]]


@lru_cache(maxsize=512)
def index_of(documents: tuple[str, ...]) -> BM25:
    """The index of these documents, cached for the next query."""
    return BM25(documents)
