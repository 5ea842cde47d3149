"""Maximum cliques of dissimilar texts: the most rows of which no two are alike (Wang et al. 2025, arXiv:2508.05242).

Its complement, the graph of texts that are alike, is sparse, and falls into components: of each component the most rows are taken
that are not alike, exactly where it has at most `EXACT` rows, else greedily, those first that are like the fewest others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.util import extras

from .diversity import check_comparable, similarities
from .drops import Drop
from .tables import Places, Table
from .values import text_of, value_of

EXACT = 24
"""Rows of a component that is searched through; the search takes exponential time in the worst case."""


def unlike(texts: Sequence[str], threshold: float = 0.5) -> list[int]:
    """Indices, in order, of the most texts of which each two have a similarity below `threshold` (`diversity.similarities`)."""
    extras.require("verify", "networkx", what="choosing rows by a maximum clique")
    check_comparable(len(texts), "the choice of unlike texts")
    import networkx as nx

    alike = nx.from_numpy_array((similarities(texts) >= threshold) & ~np.eye(len(texts), dtype=bool))
    chosen: list[int] = []
    for component in nx.connected_components(alike):
        # sorted, so that ties do not depend on the order of a set
        part = nx.Graph(alike.subgraph(sorted(component)))
        if len(part) <= EXACT:
            chosen += nx.max_weight_clique(nx.complement(part), weight=None)[0]
            continue
        while part:
            least = min(part, key=lambda node: (part.degree(node), node))
            chosen.append(least)
            part.remove_nodes_from([least, *part[least]])
    return sorted(chosen)


def clique_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, threshold: float = 0.5, column: str = "code"
) -> dict[str, Any]:
    """The most rows of which no two are alike, in the order of the file."""
    if not 0 < threshold <= 1:
        raise RewardlabError(f"threshold is a similarity above 0, at most 1, not {threshold}")
    places = Places("clique", [source], out, dropped)
    table = Table.load(source)
    table.require(column)
    check_comparable(len(table.rows), source)
    kept = set(unlike([text_of(value_of(row, column)) for row in table.rows], threshold))
    why = Drop("alike", f"others are like it (a similarity of {threshold:g} or more); {len(kept)} were kept")
    left_out = [(table.places[i], row, why) for i, row in enumerate(table.rows) if i not in kept]
    return places.finish([table], left_out, [row for i, row in enumerate(table.rows) if i in kept])
