"""Pairs of a better and a worse reply, as the code of RewardBench counts them, which other benchmarks run too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.scoreboard.figures import Marks, means
from rewardlab.scoreboard.items import Item, Verdict


def right(item: Item, verdict: Verdict) -> float:
    """Whether the better reply of a pair is preferred. A reward model loses a tie; a judge's tie, and a judgement that cannot be
    read, is half a win, whether it compares replies or rates each by itself; of both orders the mean counts."""
    (pair,) = item.pairs
    if not verdict.orders:
        said = verdict.prefers(*pair)
        return 0.5 if verdict.judged and said in (None, 0.5) else float(said == 1.0)
    won = [0.5 if x is None else x if asked == pair else 1 - x for asked, x in verdict.orders.items() if set(asked) == set(pair)]
    return float(np.mean([0.5 if x == 0.5 else float(x > 0.5) for x in won])) if won else 0.0


def grouped(marks: Marks, groups: Sequence[str]) -> dict[str, float]:
    """The share of right pairs: overall, over all pairs; macro, the mean of the groups; of each group, whose subsets are called
    "group" or "group/part"; and of each part."""
    names = [subset.partition("/")[0] for subset in marks.subset]
    of = means(Marks(marks.columns, np.array(names, object)), "right")
    parts = {subset: x for subset, x in means(marks, "right").items() if "/" in subset}
    known = [x for x in of.values() if x == x]
    whole = {"overall": marks.mean("right"), "macro": float(np.mean(known)) if known else math.nan}
    return whole | {group: of.get(group, math.nan) for group in groups} | parts
