"""REBASE: tree search that divides the budget of each depth by the softmax of rewards.

    W_j = B exp(R_j / T) / sum_k exp(R_k / T),   B = n - replies that have ended;     answer = argmax over a of sum_i 1[a_i = a] R_i

Every reply is paid for once, where MCTS spends many rollouts to learn which nodes are worth it.

Wu et al. 2024, arXiv:2408.00724, and the released code (thu-wyz/rebase, 7dd736c, rebase.py; 5da162e, rebase.yaml): n = 16, T = 0.2,
temperature 1, widths as they are rounded there. There a step ends at "Step k", and a search after 25 of them; here at the end of a
line, and by the length of a reply. Without a scorer, the geometric mean of the policy's own probabilities is the score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rewardlab.core import Group, Problem, Recipe, Run, Trajectory, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.stepwise import Stepping, grown, marked, softmax, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt

# ---- A tree that grows where its rewards are high, as wide as the budget allows --------------------------------------


@rollout
def reward_balanced(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 16, balance: PositiveFloat = 0.2,
    temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """n replies of one tree to each problem: at every depth, the open rows share the next steps by softmax(score / balance).

    There are n of them less the replies that have ended. Rows whose share is none are left. step_tokens: most tokens of a step
    (None: of a reply).  stop: the texts that end a step.

    Wu et al. 2024, arXiv:2408.00724
    """
    how = Stepping(step_tokens, temperature, tuple(stop))
    ended: list[Group] = [[] for _ in problems]
    # the next steps that each open row is due
    due: list[list[tuple[Trajectory, int]]] = [[(t, n)] for t in started(problems, run)]
    while any(due):
        parents = [[(t, k) for t, count in of for k in range(count)] for of in due]
        sampled = iter(grown([t for of in parents for t, _ in of], [k for of in parents for _, k in of], how, run))
        children = [[next(sampled) for _ in of] for of in parents]
        for done, rows in zip(ended, children, strict=True):
            done += [t for t in rows if t.stop is not None]
        still = [[t for t in rows if t.stop is None] for rows in children]
        values = worths(still, score, run)
        due = [
            list(zip(rows, widths(known, n - len(done), balance), strict=True))
            for rows, known, done in zip(still, values, ended, strict=True)
        ]
    return [marked(rows, run) for rows in ended]


def widths(values: Sequence[float], total: int, balance: float) -> list[int]:
    """How many of `total` next steps each row gets: its share of what is left, rounded up, from the best row on.

    The rounding is that of the released code; the paper's, to the nearest, may give more or fewer than `total`.
    """
    counts, left, rest = [0] * len(values), total, 1.0
    shares = softmax(values, balance) if values else []
    for i in sorted(range(len(values)), key=lambda i: -shares[i]):
        # a share of all that is left may come out a hair above it
        counts[i] = min(left, math.ceil(left * shares[i] / rest - 1e-9)) if rest > 0 else 0
        left, rest = left - counts[i], rest - shares[i]
    return counts


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def rebase(
    base: Recipe | None = None, *, n: int = 16, balance: float = 0.2, temperature: float = 1.0, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "vote",
) -> Recipe:  # fmt: skip
    """n: replies per problem.  balance: T; a lower one spends more on the best rows.  step_tokens: most tokens of a step.
    stop: the texts that end one.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="rebase", reward=own_probability(), measure=accuracy(), update=Update())
    search = reward_balanced(
        score=base.required("reward"), n=n, balance=balance, temperature=temperature, step_tokens=step_tokens, stop=stop
    )
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


fidelity = "whole"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
