"""Duels whose training rows bring a judgement by another judge, which checks more and slips less, but is not always right.

It stands in `judgement` where that judge read the better reply first, and in `judgement_reversed` where it read the worse one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired
from rewardlab.worlds.duels import Kinds, duels


def taught_duels(
    *, kinds: Kinds = "both", taught_error: Share = 0.05, taught_named: Share = 0.8, size: PositiveInt | None = None,
    test_size: PositiveInt = 500,
) -> Task:  # fmt: skip
    """The pairs of `duels`, the policy that is as careless as there, and judgements to learn from.

    taught_error: of the judge who wrote these, for each result that it calculates.  taught_named: the chance that it names a wish.
    """
    plain = duels(kinds=kinds, size=size, test_size=test_size)
    writes = duels(judged=True, error=taught_error, named=taught_named, test_size=1).demonstrate
    assert writes is not None
    return replace(
        plain, name="taught_duels", train=Paired(plain.train, partial(_judged, writes=writes)),
        columns=(*plain.columns, "judgement", "judgement_reversed"), about="duels with judgements to learn from",
    )  # fmt: skip


def _judged(problem: Problem, _: random.Random, *, writes: Callable[[Problem, random.Random], str]) -> Problem:
    # a stream of its own: that of the pair would tie the judge's slips to the replies
    rng = random.Random(seed_of("taught_duels", problem.key))
    pair = [problem.meta["chosen"], problem.meta["rejected"]]
    column, shown = rng.choice([("judgement", pair), ("judgement_reversed", pair[::-1])])
    return replace(problem, meta={**problem.meta, column: writes(replace(problem, meta={**problem.meta, "shown": shown}), rng)})
