"""Comparisons of replies by a judge, and a tournament that chooses one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rewardlab.core import Group, Problem, Run, Score, Trajectory, seed_of, select
from rewardlab.judges.named import form_of
from rewardlab.rewards.judge import judgements_by
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.answers import after_thinking

Pair = tuple[Problem, str, str]
"""A problem, and two replies to it."""
Compare = Callable[[Sequence[Pair]], Sequence[float]]
"""From pairs of replies to the preference for the first of each, from 0 to 1; 1/2 is a tie."""


def shares_won(
    pairs: Sequence[Pair], run: Run, *, model: str, form: str, votes: int, temperature: float = 1.0, max_new: int = 0
) -> list[float]:  # fmt: skip
    """For each pair of replies the share of its votes for the first: 1/2 for the same text twice, or where none can be read.

    Every second vote reads the pair in the reverse order. No judge is shown the gold answer.
    """
    of = form_of(form)
    differ = [i for i, (_, a, b) in enumerate(pairs) if a != b]
    # what was thought before a reply is no part of it
    shown = [tuple(map(after_thinking, pairs[i][1:])) for i in differ]
    asked = [
        of.asked(replace(pairs[i][0], answer=None), both[:: -1 if k % 2 else 1])
        for i, both in zip(differ, shown, strict=True) for k in range(votes)
    ]  # fmt: skip
    said = judgements_by(run, model, asked, max_new or run.max_new, temperature, False, of) if asked else []
    found = [values[k % votes % 2] if (values := of.read(text, 2).values) else None for k, text in enumerate(said)]
    shares = [0.5] * len(pairs)
    for n, i in enumerate(differ):
        read = [v for v in found[n * votes : (n + 1) * votes] if v is not None]
        shares[i] = float(np.mean(read)) if read else 0.5
    return shares


def knocked_out(group: Group, compare: Compare, rng: random.Random) -> Trajectory:
    """The reply that wins a knockout of the group: N - 1 comparisons of N replies.

    Pairs are random, and so is who wins a tie. A reply without an opponent goes on to the next round, and plays first in it.
    """
    left = rng.sample(group, len(group))
    while len(left) > 1:
        matches = list(zip(left[::2], left[1::2], strict=False))
        shares = compare([(a.problem, a.reply, b.reply) for a, b in matches])
        lots = [share if share != 0.5 else rng.random() for share in shares]
        won = [a if lot > 0.5 else b for (a, b), lot in zip(matches, lots, strict=True)]
        left = left[2 * len(matches) :] + won
    return left[0]


@select
def knockout(
    group: Group, scores: list[Score], run: Run, *, model: str = "policy", form: str = "rrm", votes: PositiveInt = 1,
    temperature: NonNegativeFloat = 1.0, max_new: NonNegativeInt = 0,
) -> Trajectory:  # fmt: skip
    """The reply that wins a tournament: in each round pairs are compared, and the winners go on. It reads no scores.

    model: that judges, of the run or openai:URL#NAME.  votes: judgements of a pair, every second one in the reverse order; a tie is
    decided by lot.  max_new: tokens of a judgement; 0: those of the run.
    """
    rng = random.Random(seed_of("knockout", run.seed, run.moment, group[0].problem.key))
    asked = partial(shares_won, run=run, model=model, form=form, votes=votes, temperature=temperature, max_new=max_new)
    return knocked_out(group, asked, rng)
