"""iREPO: regress the implicit-reward gap of a pair onto the log-odds of votes, in rounds on the policy's own replies.

    loss = (logit p - beta [log pi/pi_k(y_1) - log pi/pi_k(y_2)])^2,    p: the share of annotators who prefer y_1,  pi_k: the policy
    at the start of the round, which writes the replies

A label that is yes or no lets DPO drive a pair apart without bound, however close the vote was. Here votes that are split leave the
pair together, and the loss has its minimum where the implicit rewards differ as Bradley and Terry's do. IPO has one target for all.

Le et al. 2024, arXiv:2405.15230, of which abstract and summaries were read; no code is public. (inferred): beta; n replies, of
which the best and the worst by votes make the pair; p = (wins + 1/2) / (votes + 1), so that a unanimous vote has finite log-odds;
rounds of `round_steps`, each with a fresh optimiser. Annotators judge by a reward model, learnt from pairs or brought along
(--reward-model PATH), or by a reward (score=...).
"""

from typing import Any

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Loop, Outputs, Recipe, Run, loop, objective
from rewardlab.data.columns import Column, Data
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.objectives.pairs import margin, row_sum
from rewardlab.rewards.imperfect import votes
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.worlds.notes import note_quality


@objective(unit="group", needs=("ref",))
def vote_regression(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.1) -> Tensor:
    """The squared error of the implicit-reward gap; a row's reward is its votes. A pair without votes teaches nothing."""
    count = row_sum(batch.reward, batch).view(-1, 2)  # (G, 2)
    known = batch.rewarded.any(1).view(-1, 2).all(1)
    # logit of (a + 1/2) / (a + b + 1)
    target = torch.log(count[:, 0] + 0.5) - torch.log(count[:, 1] + 0.5)
    error = target - beta * margin(row_sum(out.logprobs - batch.ref, batch), batch)
    return torch.where(known, error, 0.0).square()


@loop(wraps="inner")
def in_rounds(recipe: Recipe, run: Run, ops: Any, *, round_steps: PositiveInt, inner: Loop | None = None) -> None:
    """Make the policy the reference every `round_steps`, with a fresh optimiser.  inner: how a step is taken."""
    if run.step and run.step % round_steps == 0:
        ops.new_stage()
    run.log("round", 1 + run.step // round_steps)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def irepo(
    base: Recipe | None = None, *, beta: float = 0.1, voters: int = 8, noise: float = 1.0, n: int = 4, round_steps: int = 10,
    score: Reward | None = None, reward_model: str = "value-head", pairs: int | None = None,
) -> Recipe:  # fmt: skip
    """voters: annotators of each pair.  noise: a reward higher by this makes them prefer a reply with odds of e to 1.  n: own
    replies to each prompt.  score, reward_model, pairs: what annotators judge by, as in `rlhf`.
    """
    base = base or dpo(problems=8)
    base = rlhf(base, score=score, reward_model=reward_model, pairs=pairs)
    voted = votes(inner=base.required("reward"), voters=voters, noise=noise)
    rounds = in_rounds(round_steps=round_steps, inner=base.loop)
    return base.but(rollout=ranked(by=voted, n=n), reward=voted, objective=vote_regression(beta=beta), loop=rounds)


fidelity = "reading"
left_out = (
    "ranks by Zermelo's model, and annotators that are language models: votes are sampled from a reward by `noise`, the scale on "
    "which its differences are log-odds (1 for a Bradley-Terry model)"
)
data = Data(
    chosen=Column("the better reply, of which the reward model learns; not with a reward or model of your own", optional=True),
    rejected=Column("the worse reply", optional=True),
)

claim = Claim(
    says="votes on own replies, in rounds, make replies better than DPO on as many pairs with labels of one such voter",
    versus="dpo", task="notes:noise=0.2", measure="reward", direction="higher", margin=0.066,
    settings={"score": note_quality(), "noise": 0.2, "beta": 1.0, "lr": 1e-4}, versus_settings={"problems": 8, "lr": 1e-4},
    by=mean_reward(), steps=80, fault=Within("reward", high=0.85, says="quality that hard labels lead to"), learns="reward",
    start=None, tried="DPO differs in two ways, which are the paper's: labels of one voter, and pairs that others wrote beforehand",
    finding="quality of the replies .55 before; .75 with eight votes on own replies in rounds, .64 with DPO on written pairs and "
    "one vote. Both differences act at once: which of them helps is not shown",
)  # fmt: skip
