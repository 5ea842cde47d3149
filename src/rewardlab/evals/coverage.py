"""How much of a corpus a choice of it covers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

from rewardlab.core import Problem, Run, measure, seed_of
from rewardlab.core.domain import PositiveShare
from rewardlab.data.cliques import unlike
from rewardlab.errors import RewardlabError

_WORD = re.compile(r"[^\W\d]+|[^\w\s]")


@measure
def clique_coverage(
    problems: Sequence[Problem], run: Run, *, threshold: PositiveShare = 0.5, column: str = "code"
) -> dict[str, float]:
    """Of the pairs of neighbouring words, numbers left out, of all texts of a column: how many are in those that a maximum clique
    keeps (`data.cliques`), and in as many texts that are sampled at random.

    covered.clique, covered.random: shares of the pairs.  kept: share of the texts. No text is generated.
    """
    texts = [p.meta.get(column) for p in problems]
    if not all(isinstance(text, str) for text in texts):
        raise RewardlabError(f"clique_coverage: problems without a text in the column {column!r}")
    known = [str(text) for text in texts]
    chosen = unlike(known, threshold)
    sampled = random.Random(seed_of("coverage", run.seed)).sample(range(len(known)), len(chosen))
    everything = _pairs(known)
    covered = {name: len(_pairs([known[i] for i in of])) for name, of in (("clique", chosen), ("random", sampled))}
    shares = {f"covered.{name}": count / max(1, len(everything)) for name, count in covered.items()}
    return {**shares, "kept": len(chosen) / len(known), "n": float(len(known))}


def _pairs(texts: Sequence[str]) -> set[tuple[str, str]]:
    words = [_WORD.findall(text) for text in texts]
    return {pair for row in words for pair in pairwise(row)}
