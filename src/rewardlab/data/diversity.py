"""Influential and diverse rows (DEPO's first selection; Tang et al. 2025, arXiv:2509.01321).

    similarity   cosine of the texts' words, weighted by how rare they are (TF-IDF)
    influence    PageRank over the graph of similarities: how central a text is among all
    choice       the greedy mode of a determinantal point process with the kernel  w_i S_ij w_j,  w the influence

The paper takes similarities of a model's hidden states; words need no model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.text.words import UNSPACED

from .drops import Drop
from .tables import Places, Table
from .values import text_of, value_of

MOST = 20_000
"""Rows that are compared, each with each other."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")


def check_comparable(rows: int, source: object) -> None:
    """Raise RewardlabError if there are more rows than can be compared, each with each other."""
    if rows > MOST:
        raise RewardlabError(f"{source} has {rows:,} rows, more than {MOST:,} to compare: filter or split it first")


def similarities(texts: Sequence[str]) -> np.ndarray:
    """(n, n) cosines of the texts' TF-IDF vectors, from 0 to 1; a text without words is like itself alone."""
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    rarity = Counter(word for count in counts for word in count)
    at = {word: k for k, word in enumerate(rarity)}
    table: np.ndarray = np.zeros((len(texts), len(at)), np.float32)
    for i, count in enumerate(counts):
        for word, n in count.items():
            # + 1: a word of every text still counts
            table[i, at[word]] = n * (math.log(len(texts) / rarity[word]) + 1)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    found = table @ table.T
    np.fill_diagonal(found, 1.0)
    return found


def pagerank(weights: np.ndarray, damping: float = 0.85, iterations: int = 100) -> np.ndarray:
    """(n,) the share of a random walk's time at each node, which follows edges by weight, and with 1 - damping starts anew."""
    n = len(weights)
    edges = weights - np.diag(np.diag(weights))
    out = edges.sum(1, keepdims=True)
    # a node without edges goes anywhere
    steps = np.where(out > 0, edges / np.maximum(out, 1e-12), 1 / max(1, n))
    share = np.full(n, 1 / max(1, n))
    for _ in range(iterations):
        share = damping * share @ steps + (1 - damping) / max(1, n)
    return share


def diverse(similarity: np.ndarray, weights: np.ndarray, rows: int) -> list[int]:
    """Indices of at most so many rows, each the one that enlarges the determinant of w_i S_ij w_j most (Chen et al. 2018)."""
    kernel = weights[:, None] * similarity * weights[None, :]
    gain = np.diag(kernel).astype(float).copy()
    # relative: what the rounding of float32 leaves of a duplicate is no gain
    least = 1e-5 * float(gain.max(initial=0.0))
    chosen: list[int] = []
    columns = np.zeros((0, len(kernel)))
    while len(chosen) < min(rows, len(kernel)):
        j = int(np.argmax(gain))
        if gain[j] <= least:
            break
        column = (kernel[j] - columns.T @ columns[:, j]) / math.sqrt(gain[j])
        columns = np.vstack([columns, column])
        gain = gain - column**2
        gain[j] = -math.inf
        chosen.append(j)
    return chosen


def diverse_file(
    source: Path | str, out: Path | str, rows: int, dropped: Path | str | None = None, *, column: str = "prompt"
) -> dict[str, Any]:
    """The `rows` most influential rows that differ from one another, in the order of the file, with the column influence.

    influence: the PageRank, 1 on average.  Fewer rows come out where the others only repeat them.
    """
    if rows < 1:
        raise RewardlabError(f"rows is a whole number from 1 up, not {rows}")
    places = Places("diverse", [source], out, dropped)
    table = Table.load(source)
    table.require(column)
    check_comparable(len(table.rows), source)
    similar = similarities([text_of(value_of(row, column)) for row in table.rows])
    influence: np.ndarray = pagerank(similar) * len(table.rows)
    kept = set(diverse(similar, influence, rows))
    why = Drop("not chosen", f"other rows are more central, or say the same; {len(kept)} were kept")
    numbered = [{**row, "influence": round(float(w), 6)} for row, w in zip(table.rows, influence, strict=True)]
    left_out = [(table.places[i], row, why) for i, row in enumerate(table.rows) if i not in kept]
    return places.finish([table], left_out, [row for i, row in enumerate(numbered) if i in kept])
