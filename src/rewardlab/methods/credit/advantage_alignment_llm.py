"""Advantage Alignment: a turn that helps the other player gains credit after a good game for oneself, and loses it after a bad one.

    A*_t = A1_t + beta gamma (sum_{k<t} gamma^{t-k} A1_k) A2_t
    A1, A2: return of the own and of the other's turn t, minus the mean of the other games at the same turn

Each player that learns for itself finds that defecting pays, whatever the other does, and both end with little. With the second
term what is good for the other becomes more likely after it did one good, and what is bad for it after harm: players that answer
in kind, with whom cooperation pays and which are not exploited. Parallel games from the same start take the place of a critic.

Piche et al. 2025, arXiv:2511.19405. Followed as released (dereckpiche/AdAlignLLM, d53b76d: mllm/training/credit_methods.py, with
one gamma more than its docstring has, and trainer_ad_align.py, which takes the means over the other games player by player;
configs/ipd_vanilla_ad_align.yaml; 97272b8: configs/base.yaml): beta = .5, gamma = .9 for returns and past advantages, rewards / 5,
entropy .01, no standard deviation, 10 rounds; 128 games there. `beta=0` is the plain RL that the paper compares with.

The game is the same for both players: env=..., whose state has an entry `other`, and which pays by its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Credit,
    Environment,
    Group,
    Problem,
    Recipe,
    Run,
    Sampling,
    Score,
    Trajectory,
    credit,
    measure,
    rollout,
    seed_of,
)
from rewardlab.credit.leave_one_out import turn_counts, turn_leave_one_out
from rewardlab.credit.turns import over_turns, turn_sums
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.returns import episode_return
from rewardlab.methods.baselines.rloo import rloo
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.environment import paid
from rewardlab.rollouts.interactive import play
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.worlds.dilemmas import dilemma

# ----------------------------------------------------------------------------------------------------------------------
#
# What a credit teaches two players of a repeated prisoner's dilemma: strategies of five numbers, followed exactly.

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
    for name, rule in (("aligned", aligned), ("plain", plain)):
        strategy = learnt(rule, run, start, games, rounds, updates, lr, entropy)
        found[f"payoff.{name}"] = mean_payoff(strategy, strategy, rounds)
        found[f"against_defector.{name}"] = mean_payoff(strategy, DEFECTS, rounds)
        found[f"kind.{name}"], found[f"harsh.{name}"] = float(strategy[0]), 1 - float(strategy[1])
    return found | {"n": float(games)}


# ---- Self-play: the policy as both players of a game -----------------------------------------------------------------

PLAYERS = ("first player", "second player")
"""Tags of the rows of a game."""


@rollout(rows=lambda n, **_: 2 * n, groups=lambda **_: 2)
def against_itself(
    problems: list[Problem], run: Run, *, env: Environment, n: PositiveInt = 8, turns: PositiveInt = 10,
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """n parallel games of each problem, in which both players move at once: two groups, the first players and the second ones.

    env: the game as one player sees it, the same for both; in state["other"] it finds what the other said in this round. The rows
    of a game have the same `path`, and the tags of PLAYERS. A game ends for both where it ends for one.
    """
    rows = [(p, i, tag) for p in problems for i in range(n) for tag in PLAYERS]
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for p, i, _ in rows]
    states = [state for _, state in openings]
    if not all(isinstance(state, dict) and "other" in state for state in states):
        raise RewardlabError(f"{env.name} is no game of two players: its state has no entry 'other', for what the other says")
    prompts = [p.prompt if message is None else (*p.prompt, message) for (p, *_), (message, _) in zip(rows, openings, strict=True)]
    games = run.policy.read([Trajectory(p, path=(i,), tag=tag) for p, i, tag in rows], prompts)
    play(env, games, states, run, Sampling(run.max_new, temperature), turns, together=_exchange)
    return [games[i + player : i + 2 * n : 2] for i in range(0, len(games), 2 * n) for player in (0, 1)]


def _exchange(games: list[Trajectory], states: list, live: list[int], said: bool) -> list[int]:
    """Rows 2k and 2k + 1 are one game. Ends it for both where one has ended; tells each what the other said, if they have."""
    on = set(live)
    both = [i for i in live if i ^ 1 in on]
    for i in on - set(both):
        games[i] = replace(games[i], stop=games[i ^ 1].stop)
    for i in both if said else ():
        states[i] = {**states[i], "other": games[i ^ 1].reply}
    return both


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def other_players(batch: Batch) -> list[int | None]:
    """The row of the other player of each row's game; None where it was dropped."""
    seats: dict[tuple, list[int]] = {}
    for i, (row, _) in enumerate(batch.rows):
        seats.setdefault((row.problem.key, row.path, row.tag), []).append(i)
    found: list[int | None] = [None] * len(batch)
    for (key, path, tag), mine in seats.items():
        theirs = seats.get((key, path, PLAYERS[tag == PLAYERS[0]]), []) if tag in PLAYERS else []
        # a problem that comes twice in a step has two games of this number; if a side of one was dropped, nobody knows of which
        for i, j in zip(mine, theirs, strict=True) if len(mine) == len(theirs) else ():
            found[i] = j
    return found


@credit
def align_with_other(a: Tensor, batch: Batch, run: Run, *, beta: float = 0.5, gamma: Share = 0.9) -> Tensor:
    """The advantages of turns, plus beta gamma times the player's discounted past advantages, times those of the other player.

    Where the other player, its verdict, or its turn of that number is missing, a turn keeps its advantage.
    """
    has, other = turn_counts(batch), other_players(batch)
    length = turn_sums(torch.ones_like(a), batch.mask).clamp(min=1)
    own = torch.where(has, turn_sums(a, batch.mask) / length, 0.0)
    index = torch.tensor([i if j is None else j for i, j in enumerate(other)], device=a.device)
    met = torch.tensor([j is not None for j in other], device=a.device)
    # 0 for a turn that the other has not
    theirs = own[index] * met[:, None]
    past, after = torch.zeros_like(own), own.new_zeros(len(own))
    for t in range(own.shape[1]):
        past[:, t] = after
        after = gamma * (after + own[:, t])
    return over_turns(torch.where(has, own + beta * gamma * past * theirs, 0.0), batch.mask)


def advantage_alignment_llm(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 10,
    beta: float = 0.5, gamma: float = 0.9, scale: float = 5.0, entropy: float = 0.01,
) -> Recipe:  # fmt: skip
    """env, turns: the game, and its most rounds.  n: parallel games per problem, two at least; None: as many as
    the base has replies, or else 8.  beta: of alignment; 0 is plain RL.  gamma: discount per turn.  scale: what payoffs are
    divided by.  entropy: weight of the entropy bonus.
    """
    base = base or rloo(n=n or 8)
    objective, game = policy_gradient(), against_itself(env=env or dilemma(), n=n or base.rows_per_problem, turns=turns)
    return base.but(
        rollout=game.but(temperature=base.sampling_settings.get("temperature", 1.0)),
        reward=1 / scale * paid(),
        credit=turn_leave_one_out(gamma=gamma) >> align_with_other(beta=beta, gamma=gamma),
        objective=objective + entropy * negative_entropy() if entropy else objective,
        weighting=token_mean(),
        measure=episode_return(play=game.but(n=1)),
    )


fidelity = "core"
left_out = "games against former selves (`agent_buffer`), importance weights truncated at 2, and the paper's games with talk"
data = Data(
    refuses="plays a game of two players (env=...), whose moves pay: there are no questions with answers",
)
check = Check(
    says="players of five numbers that learn a repeated prisoner's dilemma with aligned advantages end with more than without",
    versus=None, task="dilemmas", measure="payoff.aligned", direction="higher", margin=0.85, against="payoff.plain",
    by=learnt_strategies(
        aligned=turn_leave_one_out(gamma=0.9) >> align_with_other(),
        plain=turn_leave_one_out(gamma=0.9) >> align_with_other(beta=0.0),
    ),
    problems=8, steps=1, guard=Within("against_defector.aligned", low=0.8, says="payoff against a defector, at most 1"),
    fault=Within("payoff.plain", high=1.5, says="what plain learners get, of 1 to 3"), learns=None, start=None,
    finding="two players that both learn for themselves end at a payoff of 1.0 a round, as if both defect; with aligned "
    "advantages they end at 2.9 of 3, and still get .89 of 1 from one that always defects. No language model plays here",
)  # fmt: skip
baseline = "rloo"
