"""How varied one reply is: in its words, and in the perspectives that it takes."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from rewardlab.core import Score, Trajectory
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.text.words import ngrams, sentences, words

LONGEST = 20_000
"""Characters at the end of a reply that are read."""


@reward
def lexical_diversity(trajectory: Trajectory) -> Score:
    """The mean of four measures from 0 to 1; 0 for a reply without words.

    types: different words, of all.  bigrams: different pairs of neighbouring words, of all.  entropy: of the words, divided by that
    of as many different ones.  sentences: 1 less the share of words that neighbouring sentences have in common (Jaccard).
    A single word, or sentence, has nothing that it could vary: 0 there, or the shortest reply would be the most varied.
    """
    text = trajectory.reply[-LONGEST:]
    said = words(text)
    if not said:
        return Score(0.0, why="no words")
    found = {"types": len(set(said)) / len(said), "bigrams": _different(ngrams(said, 2)), "entropy": _entropy(said)}
    found["sentences"] = _change([set(words(sentence)) for line in text.splitlines() for sentence in sentences(line)])
    return Score(math.fsum(found.values()) / len(found), why=", ".join(f"{name} {value:.2f}" for name, value in found.items()))


@reward
def perspectives(trajectory: Trajectory, *, pattern: str, most: PositiveInt = 4) -> Score:
    """How many different perspectives a reply takes, divided by `most`, and at most 1.

    pattern: a regular expression that is searched in every line; its first group, if there is one, names the perspective, so that
    the same one twice counts once. E.g. "^As an? ([^,:]+)", or "^Role [0-9]+: (.+)".
    """
    try:
        expression = re.compile(pattern)
    except re.error as e:
        raise RewardlabError(f"perspectives: the pattern {pattern!r} is not a regular expression: {e}") from e
    matches = [match for line in trajectory.reply[-LONGEST:].splitlines() if (match := expression.search(line[:500]))]
    named = {" ".join((match[1] if expression.groups else match[0]).lower().split()) for match in matches}
    return Score(min(1.0, len(named) / most), why=", ".join(sorted(named)) or "none")


def _different(counts: Counter) -> float:
    return len(counts) / counts.total() if counts else 0.0


def _entropy(said: list[str]) -> float:
    shares = [count / len(said) for count in Counter(said).values()]
    return -math.fsum(p * math.log(p) for p in shares) / math.log(len(said)) if len(said) > 1 else 0.0


def _change(parts: list[set[str]]) -> float:
    common = [len(a & b) / len(a | b) for a, b in pairwise(part for part in parts if part)]
    return 1 - math.fsum(common) / len(common) if common else 0.0
