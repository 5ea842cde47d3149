"""What a credit teaches two players of a repeated prisoner's dilemma: strategies of five numbers, followed exactly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rewardlab.core import Batch, Credit, Problem, Run, Score, Trajectory, measure
from rewardlab.core.domain import PositiveFloat, PositiveInt

PAYOFFS = torch.tensor([[3.0, 0.0], [5.0, 1.0]], dtype=torch.float64)
"""What a player gets for its move (0 cooperates, 1 defects) and the other's."""
LARGEST = 5.0
FIRST, DEFECTS = 4, torch.zeros(5, dtype=torch.float64)
"""The state of the first round; the states before are 2 own + other, of the last moves.  The strategy that never cooperates."""


def mean_payoff(mine: Tensor, theirs: Tensor, rounds: int) -> float:
    """Expected payoff of a round, for strategies (5,): the chance to cooperate after each state."""
    # theirs, by my states: after (own, other) the other has seen (other, own)
    theirs = theirs[[0, 2, 1, 3, FIRST]]
    at, total = torch.zeros(5, dtype=torch.float64), 0.0
    at[FIRST] = 1.0
    for _ in range(rounds):
        chances = (torch.stack((mine, 1 - mine), -1)[:, :, None] * torch.stack((theirs, 1 - theirs), -1)[:, None]) * at[
            :, None, None
        ]
        moves = chances.sum(0)
        total += float((moves * PAYOFFS).sum())
        at = torch.cat((moves.flatten(), at.new_zeros(1)))
    return total / rounds


def learnt(credit: Credit, run: Run, start: Tensor, games: int, rounds: int, updates: int, lr: float, entropy: float) -> Tensor:
    """(5,) the strategy that policy gradients with this credit lead to, where both players follow and change the same one."""
    logits = start.clone().requires_grad_()
    # detached: a stream that begins anew, so that every credit meets the same luck
    optimizer, rng, rows = torch.optim.Adam([logits], lr=lr), run.detached().rng("eval"), _rows(games)
    for _ in range(updates):
        states, moves, pay = _play(logits.detach().sigmoid(), games, rounds, rng)
        batch = _batch(pay / LARGEST, rows)
        a = credit(batch.reward, batch, run)[:, 1::2]
        here = logits[states]
        cooperates, defects = logsigmoid(here), logsigmoid(-here)
        spread = -(cooperates.exp() * cooperates + defects.exp() * defects)
        loss = -(a * torch.where(moves == 0, cooperates, defects)).mean() - entropy * spread.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return logits.detach().sigmoid()


def _play(strategy: Tensor, games: int, rounds: int, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """States, moves and payoffs, each (2 games, rounds): first all first players, then all second ones."""
    state, seen = torch.full((2 * games,), FIRST), []
    for _ in range(rounds):
        move = (torch.rand(2 * games, generator=rng, dtype=torch.float64) >= strategy[state]).long()
        other = move.roll(games)
        seen.append((state, move, PAYOFFS[move, other]))
        state = 2 * move + other
    states, moves, pay = zip(*seen, strict=True)
    return torch.stack(states, 1), torch.stack(moves, 1), torch.stack(pay, 1)


def _rows(games: int) -> list[tuple[Trajectory, Score]]:
    problem, tags = Problem(()), ("first player", "second player")
    return [(Trajectory(problem, path=(i,), tag=tag), Score(0.0)) for tag in tags for i in range(games)]


def _batch(pay: Tensor, rows: list[tuple[Trajectory, Score]]) -> Batch:
    """Episodes in which every other position is a decision, which is paid at once."""
    reward = torch.stack((torch.zeros_like(pay), pay), -1).flatten(1)
    decided = torch.zeros_like(reward, dtype=torch.bool)
    decided[:, 1::2] = True
    zeros = torch.zeros_like(reward)
    length = torch.full((len(rows),), reward.shape[1])
    group = torch.arange(2).repeat_interleave(len(rows) // 2)
    return Batch(zeros.long(), decided, length, zeros, reward, decided.clone(), group, rows=list(rows))


@measure
def learnt_strategies(
    problems: Sequence[Problem], run: Run, *, aligned: Credit, plain: Credit, games: PositiveInt = 64, rounds: PositiveInt = 10,
    updates: PositiveInt = 300, lr: PositiveFloat = 0.05, entropy: float = 0.01,
) -> dict[str, float]:  # fmt: skip
    """Two players learn a repeated prisoner's dilemma (5, 3, 1, 0), with one credit ("aligned") and another ("plain"). A player's
    strategy is how often it cooperates at first and after each pair of last moves; no model is asked.

    payoff.X: of a round, between two players that learnt so, exactly;  against_defector.X: against one that always defects;
    kind.X, harsh.X: how often it cooperates after both did, and how often not where it did and the other did not.
    """
    start = 0.5 * torch.randn(5, generator=run.rng("start"), dtype=torch.float64)
    found: dict[str, float] = {}
    for name, credit in (("aligned", aligned), ("plain", plain)):
        strategy = learnt(credit, run, start, games, rounds, updates, lr, entropy)
        found[f"payoff.{name}"] = mean_payoff(strategy, strategy, rounds)
        found[f"against_defector.{name}"] = mean_payoff(strategy, DEFECTS, rounds)
        found[f"kind.{name}"], found[f"harsh.{name}"] = float(strategy[0]), 1 - float(strategy[1])
    return found | {"n": float(games)}
