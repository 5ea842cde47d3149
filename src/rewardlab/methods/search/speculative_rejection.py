"""Speculative rejection: best-of-n that drops the worst replies during generation.

    whenever rows x length = max_new, keep the rows with r >= the alpha-quantile of r;    answer = argmax over complete replies of r

The score of a partial reply foretells that of the whole, so that most of the tokens of best-of-n need not be written.

Sun et al. 2024, arXiv:2410.20290, and the released code (speculative_rejection.py): complete replies that were kept once stay to
the end, also if partial ones outdo them later. The paper scores whenever the memory is full, and begins as many replies as it
holds: when half of them go, the others have room to grow twice as long. Here n begin, in a memory of one whole reply, so that what
is computed does not depend on the machine: of 16 replies of 2,000 tokens 8 stay at 125, 4 at 250, 2 at 500 and one at 1,000. Of
five rows and alpha = 1/2 three stay, as by the paper's quantile; the code rounds. Without a scorer, the geometric mean of the
policy's own probabilities is the score.
"""

from __future__ import annotations

import math

from rewardlab.core import Group, Problem, Recipe, Run, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.stepwise import Scored, Stepping, best_of, grown, marked, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share

# ---- Many replies, the worst of which are given up before they are complete ------------------------------------------


@rollout
def rejecting(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 16, reject: Share = 0.5,
    every: PositiveInt | None = None, temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """Those of n replies to each problem that survive: after `every` tokens the share `reject` with the lowest scores goes, and
    again each time that the others have grown as much longer as there are fewer of them.

    every: None: the most tokens of a reply, over n, so that the last one ends alone.
    Complete replies are compared with the partial ones, and may go too; one that has stayed once is among the replies in the end,
    as what had pushed it out may have come to less since. At least one reply stays.

    Sun et al. 2024, arXiv:2410.20290
    """
    # all problems have as many rows, complete or not
    gaps = iter(gaps_of(n, reject, every or max(1, run.max_new // n)))
    alive: list[list[Scored]] = [[(0.0, t)] * n for t in started(problems, run)]
    stayed: list[Group] = [[] for _ in problems]
    while live := [i for i, rows in enumerate(alive) if any(t.stop is None for _, t in rows)]:
        places = [(i, k) for i in live for k, (_, t) in enumerate(alive[i]) if t.stop is None]
        # numbered at the prompt: from then on a row has no siblings
        numbers = [0 if alive[i][k][1].path else k for i, k in places]
        # after the last time, all that is left
        how = Stepping(next(gaps, None), temperature, ())
        longer = iter(grown([alive[i][k][1] for i, k in places], numbers, how, run))
        # a complete reply keeps the score that it has
        ended = [[scored for scored in alive[i] if scored[1].stop is not None] for i in live]
        new = [[next(longer) for _, t in alive[i] if t.stop is None] for i in live]
        for i, done, rows, known in zip(live, ended, new, worths(new, score, run), strict=True):
            compared = [*done, *zip(known, rows, strict=True)]
            alive[i] = best_of(compared, staying(len(compared), reject))
            known_rows = {id(t) for t in stayed[i]}
            stayed[i] += [t for _, t in alive[i] if t.stop is not None and id(t) not in known_rows]
    return [marked(rows, run) for rows in stayed]


def staying(rows: int, reject: float) -> int:
    """How many rows stay."""
    # in floating point .29 of 100 is less than 29
    return rows - math.floor(reject * rows + 1e-9) or 1


def gaps_of(rows: int, reject: float, every: int) -> list[int]:
    """The tokens between the times at which rows go, while any do: rows x length is always rows x `every`."""
    budget, before, gaps = rows * every, 0, []
    while staying(rows, reject) < rows:
        gaps.append(max(1, budget // rows - before))
        before, rows = before + gaps[-1], staying(rows, reject)
    return gaps


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def speculative_rejection(
    base: Recipe | None = None, *, n: int = 16, reject: float = 0.5, every: int | None = None, temperature: float = 1.0
) -> Recipe:
    """n: replies that are begun.  reject: alpha, the share that goes each time.  every: tokens before the first time; None: those
    of the longest reply, over n."""
    base = base or Recipe(name="speculative_rejection", reward=own_probability(), measure=accuracy(), update=Update())
    search = rejecting(score=base.required("reward"), n=n, reject=reject, every=every, temperature=temperature)
    return base.but(rollout=search, select=best())


fidelity = "core"
left_out = "filling the memory with replies and scoring when it is full, from which the paper's speed comes; its top-k of 50"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
