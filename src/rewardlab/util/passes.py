"""Rows of unequal length in passes of bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

SCORE_TOKENS = 16384
"""Padded tokens in one pass without gradient."""


def by_tokens(lengths: Sequence[int], budget: int, groups: Sequence[int] = ()) -> list[list[int]]:
    """Indices, longest first, in parts of at most `budget` padded tokens.

    groups: of each row, which rows begin as it does: these stay neighbours, and in one part where they fit into one.
    """
    groups = groups or range(len(lengths))
    longest, size = dict[int, int](), Counter(groups)
    for n, group in zip(lengths, groups, strict=True):
        longest[group] = max(longest.get(group, 0), n)
    parts: list[list[int]] = []
    # longest first: the first row of a part is its width, so the padded size of a part is known
    for i in sorted(range(len(lengths)), key=lambda i: (-longest[groups[i]], groups[i], -lengths[i])):
        begins = not parts or groups[parts[-1][-1]] != groups[i]
        rows = size[groups[i]] if begins and size[groups[i]] * longest[groups[i]] <= budget else 1
        if not parts or (len(parts[-1]) + rows) * lengths[parts[-1][0]] > budget:
            parts.append([])
        parts[-1].append(i)
    return parts


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Of each key a number, the same for equal ones."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]
