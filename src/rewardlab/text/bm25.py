"""BM25: which documents share a query's rare words.

    score(d) = sum over words w of the query:  idf(w) tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|))
    idf(w) = log(1 + (N - n(w) + 1/2) / (n(w) + 1/2)),   n(w): documents that hold w

Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond"; the idf that is never negative is Lucene's.
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
    """An index of documents. k1: how soon repeating a word stops to count.  b: how much long documents are held back."""

    def __init__(self, documents: Sequence[str], k1: float = 1.2, b: float = 0.75):
        self.documents, self.k1, self.b = documents, k1, b
        counts = [Counter(words(d)) for d in documents]
        self.length = [sum(c.values()) for c in counts]
        self.mean = sum(self.length) / max(1, len(documents))
        self.holds: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, count in enumerate(counts):
            for word, n in count.items():
                self.holds[word].append((i, n))

    def scores(self, query: str) -> dict[int, float]:
        """The score of every document that shares a word with the query, by its number."""
        found: dict[int, float] = defaultdict(float)
        for word in words(query):
            holding = self.holds.get(word, ())
            idf = math.log(1 + (len(self.documents) - len(holding) + 0.5) / (len(holding) + 0.5))
            for i, tf in holding:
                relative = self.length[i] / self.mean
                found[i] += idf * tf * (self.k1 + 1) / (tf + self.k1 * (1 - self.b + self.b * relative))
        return dict(found)

    def best(self, query: str, k: int = 1) -> list[str]:
        """The k best documents, best first; of equals, the one that comes first. Fewer where fewer share a word."""
        found = self.scores(query)
        return [self.documents[i] for i in sorted(found, key=lambda i: (-found[i], i))[:k]]


@lru_cache(maxsize=512)
def index_of(documents: tuple[str, ...]) -> BM25:
    """The index of some documents, kept for the next query to them."""
    return BM25(documents)
