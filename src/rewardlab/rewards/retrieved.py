"""What the searches of an episode found: round by round, and how like it is to what should be found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from rewardlab.core import Problem, Trajectory
from rewardlab.data.values import list_of
from rewardlab.text.embedding import embedded
from rewardlab.text.searches import failure_in
from rewardlab.text.words import normalised, words


def rounds(trajectory: Trajectory) -> list[tuple[int, str, str]]:
    """Of each reply that was answered: the position of its last decision, its text, and the text of the answer."""
    found, position, reply = [], 0, None
    for decided, run in groupby(trajectory.turns, key=lambda turn: turn.author is not None):
        turns = list(run)
        text = "".join(turn.text for turn in turns)
        if not decided and reply is not None:
            found.append((position - 1, reply, text))
        reply = text if decided else None
        position += sum(len(turn.ids) for turn in turns)
    return found


def failure_of(trajectory: Trajectory) -> str:
    """What the first search of an episode that failed was told; "" where none did. It is not the policy's fault."""
    return next((why for _, _, answer in rounds(trajectory) if (why := failure_in(answer))), "")


def tfidf_cosines(a: Sequence[str], b: Sequence[str], corpus: Sequence[str]) -> np.ndarray:
    """(len(a), len(b)) cosines of texts as counts of words, each times log((1 + N) / (1 + n)) + 1, where n of N texts have it.

    corpus: the N texts. Words of one letter do not count, as in scikit-learn.
    """
    held = Counter(word for text in corpus for word in set(plain_words(text)) if len(word) > 1)
    place: dict[str, int] = {}
    counts = [Counter(word for word in plain_words(text) if len(word) > 1) for text in (*a, *b)]
    for count in counts:
        for word in count:
            place.setdefault(word, len(place))
    table = np.zeros((len(counts), max(1, len(place))))
    for row, count in zip(table, counts, strict=True):
        for word, n in count.items():
            row[place[word]] = n * (math.log((1 + len(corpus)) / (1 + held[word])) + 1)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    return unit[: len(a)] @ unit[len(a) :].T


def similarity(a: Sequence[str], b: Sequence[str], embed: str = "") -> np.ndarray:
    """(len(a), len(b)) cosines of texts, of TF-IDF over all of them, or of the embeddings of a model of `text/embedding.py`."""
    if not a or not b:
        return np.zeros((len(a), len(b)))
    if not embed:
        return tfidf_cosines(a, b, [*a, *b])
    vectors = embedded([*a, *b], embed)
    return vectors[: len(a)] @ vectors[len(a) :].T


def texts_in(problem: Problem, column: str) -> list[str]:
    """The documents in a column, texts or {title, text}, each in one line as a search shows it; none where it is no list."""
    listed: list[Any] = list_of(problem.meta.get(column)) or []
    return [_text(x) for x in listed]


def _text(document: Any) -> str:
    # MuSiQue calls a text paragraph_text
    found = document.get("text", document.get("paragraph_text", "")) if isinstance(document, dict) else document
    # a search shows a document of several lines in one
    return " ".join(str(found).split())


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without articles."""
    return words(normalised(text))
