"""A tournament of replies, compared by a judge, that chooses one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from rewardlab.core import Group, Run, Score, Trajectory, seed_of, select
from rewardlab.rewards.tournament import Pair, shares_won
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt

Compare = Callable[[Sequence[Pair]], Sequence[float]]
"""From pairs of replies to the preference for the first of each, from 0 to 1; 1/2 is a tie."""


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
