"""ONPO: preference self-play by optimistic mirror descent, which counts the last round's win rates once more.

    D: pairs of replies by pi, the better one by the oracle first;    h(p, a) = log p/a(y_w) - log p/a(y_l)
    pi' <- argmin_p E_D (h(p, pi') - eta/2)^2;    then    pi <- argmin_p E_D (h(p, pi') - eta/2)^2, with the new pi'

The minimum is pi' exp(eta P(y > pi)) / Z: how often a reply wins against pi need not be estimated. Preferences that go round have
no reward that explains them; what no policy beats is a mixture. Around it plain self-play circles. Counting on the wins of the
round before as those of the next, the mean policy comes within O(1/T) of it, against O(1/sqrt T), and the last one comes nearer.

Zhang et al. 2025, arXiv:2502.16852, section 3 and algorithm 1; no code is public. (inferred): eta; a round is a training step,
of which each argmin is approached by `epochs` updates with a fresh optimiser, the second from the new pi'; pairs that tie teach
nothing. `optimistic=False` is the paper's self-play by plain mirror descent, pi <- argmin_p E_D (h(p, pi) - eta/2)^2.

The oracle is a reward or judge that compares the replies of a group (score=...; votes() samples from one), or a reward model,
learnt from pairs or brought along (--reward-model PATH).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Learner, Loop, Outputs, Problem, Recipe, Run, loop, measure, objective
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.objectives.pairs import margin, row_sum
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.worlds.notes import note_quality

# ---- Games between replies, solved by self-play, exactly: how fast a rule of update finds what no reply beats --------


def duality_gap(policy: Tensor, preferred: Tensor) -> Tensor:
    """(G,) max_i P(i > policy) - min_j P(policy > j), for policies (G, K) over K replies and P (G, K, K): 0 at a Nash policy."""
    wins = (preferred @ policy[..., None]).squeeze(-1)
    # P(policy > j) = 1 - P(j > policy)
    return 2 * wins.amax(-1) - 1


def random_games(rng: torch.Generator, games: int, replies: int) -> tuple[Tensor, Tensor]:
    """(G, K, K) P(i > j), uniform in [0, 1] for each pair, so that many preferences go round; (G, K) a start that favours some."""
    upper = torch.rand((games, replies, replies), generator=rng, dtype=torch.float64).triu(1)
    preferred = upper + (1 - upper.mT).tril(-1) + 0.5 * torch.eye(replies, dtype=torch.float64)
    return preferred, torch.randn((games, replies), generator=rng, dtype=torch.float64).softmax(-1)


def self_play(preferred: Tensor, start: Tensor, rounds: int, rate: float, optimistic: bool) -> tuple[Tensor, Tensor]:
    """(rounds, G) the duality gap of the mean policy so far and of the last, of players that see how often each reply wins.

    Mirror descent: pi <- pi exp(rate wins) / Z. Optimistic: pi' <- pi' exp(rate wins) / Z, and pi = pi' exp(rate wins) / Z, which
    counts on the same wins once more.
    """
    base = policy = start
    total, gaps, last = torch.zeros_like(start), [], []
    for t in range(1, rounds + 1):
        total = total + policy
        gaps.append(duality_gap(total / t, preferred))
        last.append(duality_gap(policy, preferred))
        step = rate * (preferred @ policy[..., None]).squeeze(-1)
        base = (base.log() + step).softmax(-1)
        policy = (base.log() + step).softmax(-1) if optimistic else base
    return torch.stack(gaps), torch.stack(last)


@measure
def self_play_gaps(
    problems: Sequence[Problem], run: Run, *, games: PositiveInt = 200, replies: PositiveInt = 5, rounds: PositiveInt = 256,
    rates: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0),
) -> dict[str, float]:  # fmt: skip
    """Random preference games, played by mirror descent ("omd") and by its optimistic form ("optimistic"); no model is asked.

    log_gap.X: log of the mean duality gap, over games, of the mean policy after all rounds, at the rate which is best for X there;
    slope.X: how it falls with log T from a sixteenth of the rounds on, at the best rate at either end; last.X: the gap of the last
    policy, at the rate of log_gap.
    """
    preferred, start = random_games(run.rng("eval"), games, replies)
    found: dict[str, float] = {}
    early = max(1, rounds // 16)
    for name, optimistic in (("omd", False), ("optimistic", True)):
        played = [self_play(preferred, start, rounds, rate, optimistic) for rate in rates]
        ends = [(float(mean[early - 1].mean()), float(mean[-1].mean())) for mean, _ in played]
        best = int(np.argmin([end for _, end in ends]))
        first = min(begin for begin, _ in ends)
        found[f"log_gap.{name}"] = math.log(ends[best][1])
        found[f"slope.{name}"] = (math.log(ends[best][1]) - math.log(first)) / math.log(rounds / early) if rounds > early else 0.0
        found[f"last.{name}"] = float(played[best][1][-1].mean())
    return found | {"n": float(games)}


# ---- the recipe ---------------------------------------------------------------------------------------------------------

AUX = "base"


def win_regression(logprobs: Tensor, anchor: Tensor, batch: Batch, eta: float) -> Tensor:
    """(G,) (h - eta/2)^2: half of eta is the least squares fit to wins that are +1/2 and -1/2."""
    return (margin(row_sum(logprobs - anchor, batch), batch) - eta / 2).square()


@objective(unit="group", needs=(f"{AUX}.logprobs",))
def win_over_base(out: Outputs, batch: Batch, run: Run, *, eta: PositiveFloat = 0.5) -> Tensor:
    """The regression with pi' as it was before the update for an anchor."""
    return win_regression(out.logprobs, batch.columns[f"{AUX}.logprobs"], batch, eta)


@objective(unit="group", needs=("policy.logprobs",))
def win_over_itself(out: Outputs, batch: Batch, run: Run, *, eta: PositiveFloat = 0.5) -> Tensor:
    """The regression with the policy before the update for an anchor."""
    return win_regression(out.logprobs, batch.columns["policy.logprobs"], batch, eta)


@loop(wraps="inner")
def optimistic_rounds(recipe: Recipe, run: Run, ops: Any, *, inner: Loop | None = None) -> None:
    """Rounds on pairs sampled by the policy: pi' learns from them, then the policy, from the new pi' on the same pairs.

    inner: how a step is taken in which the policy only writes.
    """
    write, base = recipe.but(objective=None), ops.learners[AUX]
    inner(write, run, ops) if inner else ops.standard_step(write)
    groups, scores, batch = ops.step_data
    # one way to approach both minima, whatever rate and epochs the run was given
    base.recipe = base.recipe.but(update=recipe.update)
    base.reset_optimizer()
    ops.learn(base, batch, groups, scores)
    run.policy.load_state(base.model.state())
    ops.policy.reset_optimizer()
    # collated anew: the anchor is pi' as it is now
    ops.update(ops.collate(groups, scores))


def onpo(
    base: Recipe | None = None, *, eta: float = 0.5, epochs: int = 4, optimistic: bool = True, score: Reward | None = None,
    reward_model: str = "value-head", pairs: int | None = None,
) -> Recipe:  # fmt: skip
    """eta: how far a round goes, in nats between a reply that always wins and one that never does.  epochs: updates of each argmin.
    optimistic: false is plain mirror descent.  score, reward_model, pairs: the oracle, as in `rlhf`.
    """
    base = base or dpo(problems=32)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs)
    base = base.but(rollout=ranked(by=base.required("reward"), n=2, model="policy"), epochs=epochs)
    if not optimistic:
        return base.but(objective=win_over_itself(eta=eta))
    aux = Learner(AUX, "copy:policy", Recipe(objective=win_over_base(eta=eta), update=base.update), every=0)
    return base.but(objective=win_over_base(eta=eta), loop=optimistic_rounds(inner=base.loop), also=(*base.also, aux))


fidelity = "core"
left_out = (
    "rounds over a whole set of prompts, with replies written beforehand: here a round is a training step; and its general "
    "preference model, for which any oracle stands"
)
data = Data(
    chosen=Column("the better reply, of which the reward model learns; not with a reward or model of your own", optional=True),
    rejected=Column("the worse reply", optional=True),
)

# by construction: the rule is played exactly on games for which its rate is proven
check = Check(
    says="on random games whose preferences go round, the mean policy of optimistic self-play comes nearer to what none beats",
    versus=None, task="notes", measure="log_gap.optimistic", direction="lower", margin=0.5, against="log_gap.omd",
    settings={"score": note_quality()}, by=self_play_gaps(), problems=8, steps=1, learns=None, start=None,
    sanity=True,
    finding="after 256 rounds the mean policy of optimistic self-play is .003 from what nothing beats, that of plain self-play "
    ".014 (exp -5.8 and -4.2). This is the rule of update, solved exactly on games of five replies: no language model learns here",
)  # fmt: skip
baseline = "ipo"
system = "onpo-optimistic-mirror-descent"
