"""Pairs whose two replies are equal: no order is in them, whoever learns from them."""

from __future__ import annotations

from rewardlab.core import Problem
from rewardlab.data.values import is_missing
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console


def without_equal_pairs(problems: list[Problem]) -> list[Problem]:
    """The problems without pairs of two equal replies; how many are left out is printed.

    Raises RewardlabError where all are such pairs.
    """
    alike = [p for p in problems if not is_missing(p.meta.get("chosen")) and p.meta["chosen"] == p.meta.get("rejected")]
    if not alike:
        return problems
    if len(alike) == len(problems):
        raise RewardlabError(
            f"{alike[0].place}: chosen and rejected are equal, in this row and in all others: no pair says anything"
        )
    console.print(
        f"left out: {len(alike):,} of {len(problems):,} pairs, whose two replies are equal (the first: {alike[0].place})",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    left_out = set(map(id, alike))
    return [p for p in problems if id(p) not in left_out]
