"""Positions of a text among token texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


def tokens_with(text: str, pieces: Sequence[str], last: bool = False) -> list[int]:
    """The numbers of the pieces in which a text stands, wholly or in part: the first time that it does, or the last.

    None where it stands nowhere. Pieces without any text hold none of it.
    """
    whole = "".join(pieces)
    begin = whole.rfind(text) if last else whole.find(text)
    if begin < 0:
        return []
    spans = pairwise(accumulate(map(len, pieces), initial=0))
    return [i for i, (a, b) in enumerate(spans) if a < begin + len(text) and b > begin and a < b]
