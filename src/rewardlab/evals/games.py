"""Games between replies, solved by self-play, exactly: how fast a rule of update finds what no reply beats."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Problem, Run, measure
from rewardlab.core.domain import PositiveInt


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
