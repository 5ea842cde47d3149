"""What programs are asked for in words, and how a careless programmer writes them.

Numbers over 3, times 2: smallest?      keep > 3; * 2; min            right
                                        keep > 3; * 2; sort; head     right, and slow
                                        keep > 2; * 2; head           as the careless one writes it
"""

from __future__ import annotations

import random

LISTS = {
    "over {k}": "keep > {k}", "under {k}": "keep < {k}", "even": "keep even", "odd": "keep odd", "without repeats": "unique",
    "plus {k}": "+ {k}", "times {k}": "* {k}", "first {k}": "take {k}", "reversed": "reverse",
}  # fmt: skip
"""Stages that make lists of lists, by the words for them."""
FOLDS = {"largest": "max", "smallest": "min", "total": "sum", "count": "len", "last": "last"}
SLOW = {"max": "sort; last", "min": "sort; head", "sum": "reverse; sum", "len": "sort; len", "last": "reverse; head"}
"""The same with more operations."""


def asked(stages: list[str], fold: str) -> str:
    return f"Numbers {', '.join(stages)}: {fold}?"


def slip(program: str, rng: random.Random, biased: float, error: float, slow: float) -> str:
    """The program as a careless programmer writes it.

    biased: how often it makes each of three mistakes wherever it can: bounds are taken to be inside, repeats stay, the first number
    is the smallest.  error: how often the text is broken, or its stages do not fit.  slow: how often the last stage is done slowly.
    """
    slips = [rng.random() < biased for _ in range(3)]
    *lists, fold = program.split("; ")
    lists = [_at_bound(stage) if slips[0] else stage for stage in lists if not (slips[1] and stage == "unique")]
    if slips[2] and fold == "min":
        fold = "head"
    elif rng.random() < slow:
        fold = SLOW[fold]
    if rng.random() >= error:
        return "; ".join([*lists, fold])
    # after a number no list can be kept, and a word that is no operation cannot be read
    return "; ".join([fold, *lists, "sort"]) if rng.random() < 0.5 else "; ".join([*lists, f"the {fold}"])


def _at_bound(stage: str) -> str:
    """`keep > 3` as somebody writes it who takes 3 to be over 3."""
    name, _, number = stage.rpartition(" ")
    step = {"keep >": -1, "keep <": 1}.get(name)
    return stage if step is None else f"{name} {int(number) + step}"
