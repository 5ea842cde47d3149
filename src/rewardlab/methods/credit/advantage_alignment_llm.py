"""Advantage Alignment: a turn that is good for the other player gains credit if the game went well for oneself, else loses it.

    A*_t = A1_t + beta gamma (sum_{k<t} gamma^{t-k} A1_k) A2_t
    A1, A2: return of the own and of the other's turn t, minus the mean of the other games at the same turn

Each player that learns for itself finds that defecting pays, whatever the other does, and both end with little. With the second
term what is good for the other becomes more likely after it did one good, and what is bad for it after harm: players that answer
in kind, with whom cooperation pays and which are not exploited. Parallel games from the same start take the place of a critic.

Piche et al. 2025, arXiv:2511.19405. Followed as released (dereckpiche/AdAlignLLM, d53b76d: mllm/training/credit_methods.py, with
one gamma more than its docstring has; configs/ipd_vanilla_ad_align.yaml; 97272b8: configs/base.yaml): means over the other games,
player by player (inferred); beta = .5, gamma = .9 for returns and past advantages, rewards / 5, entropy .01, no standard
deviation. Left out: games against former selves (`agent_buffer`), truncated importance weights. `beta=0` is the plain RL that the
paper compares with. The claim is made on players of five numbers, not on a language model.

Data: a game of two players, the same for both (env=..., whose state has an entry `other`, and which pays by its messages).
"""

import torch
from torch import Tensor

from rewardlab.core import Batch, Environment, Recipe, Run, credit
from rewardlab.core.domain import Share
from rewardlab.credit.leave_one_out import turn_counts, turn_leave_one_out
from rewardlab.credit.turns import over_turns, turn_sums
from rewardlab.evals.dilemmas import learnt_strategies
from rewardlab.evals.returns import episode_return
from rewardlab.methods.baselines.rloo import rloo
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.environment import paid
from rewardlab.rollouts.against_itself import PLAYERS, against_itself
from rewardlab.tasks.dilemmas.environment import dilemma


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
    base: Recipe | None = None, *, env: Environment | None = None, n: int = 8, turns: int = 10, beta: float = 0.5,
    gamma: float = 0.9, scale: float = 5.0, entropy: float = 0.01,
) -> Recipe:  # fmt: skip
    """env, turns: the game, and its most rounds.  n: parallel games per problem, two at least.  beta: of alignment; 0 is plain RL.
    gamma: discount per turn.  scale: payoffs are divided by it.  entropy: weight of the entropy bonus.
    """
    base = base or rloo(n=n)
    objective = policy_gradient()
    return base.but(
        rollout=against_itself(env=env or dilemma(), n=n, turns=turns),
        reward=1 / scale * paid(),
        credit=turn_leave_one_out(gamma=gamma) >> align_with_other(beta=beta, gamma=gamma),
        objective=objective + entropy * negative_entropy() if entropy else objective,
        weighting=token_mean(),
        measure=episode_return(play=against_itself(env=env or dilemma(), n=1, turns=turns)),
    )


claim = Claim(
    says="players of five numbers that learn a repeated prisoner's dilemma with aligned advantages end with more than without",
    versus=None, task="dilemmas", measure="payoff.aligned", direction="higher", margin=0.85, against="payoff.plain",
    by=learnt_strategies(
        aligned=turn_leave_one_out(gamma=0.9) >> align_with_other(),
        plain=turn_leave_one_out(gamma=0.9) >> align_with_other(beta=0.0),
    ),
    problems=8, steps=1, guard=Within("against_defector.aligned", low=0.8, says="payoff against a defector, at most 1"),
    fault=Within("payoff.plain", high=1.5, says="what plain learners get, of 1 to 3"), learns=None, start=None,
)  # fmt: skip
baseline = "rloo"
