"""THR: scale a token's advantage by whether its update raises the likelihood of the group's right replies, or keeps exploration.

    THR_jk = sign(A_j) sum over the tokens (i, k') of right replies of <e_ik' - pi_ik', e_jk - pi_jk> <h_ik', h_jk>
    A_jk = 1[|THR_jk| >= tau] (1 + p sign(THR_jk)) A_j;      p > 0 exploits, p < 0 explores
    tau = beta min_i mean_k' THR_ik',   i: the right replies

e is the sampled token as a unit vector, pi the policy's distribution there, h its last hidden state: THR is the first-order effect
of the token's update on the sum of log pi of the right replies, in which the vocabulary head alone moves. A token that a wrong
reply shares with right ones takes these down with it; one with a positive THR makes what is already right surer. Few tokens have
much of an effect: those below tau are not trained.

Deng et al. 2025, arXiv:2510.03669, whose reviews name the mask and the weights by sign; the double sum over all tokens, tau with
beta = 1, and states and probabilities before the update are those of their arXiv:2505.18830, which keeps what is above tau (here:
or equals it, as the one token of the only right reply does). (inferred): that tau is the same here; the mask and the weights
together; p = .1, as no released code was found; what earns more than the group's mean is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Credit, Problem, Recipe, Rollout, Run, credit, measure
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import after_step, judged_batch
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat
from rewardlab.util.ranking import auc_of

# ---- Which decisions' updates change the likelihood of the right replies, and whether that can be told beforehand ----


@measure
def likelihood_foretold(
    problems: Sequence[Problem], run: Run, *, reward: Reward, credit: Credit, predictors: dict[str, Credit], rollout: Rollout,
    length: PositiveFloat = 0.01,
) -> dict[str, float]:  # fmt: skip
    """For each decision of the replies with a negative credit A: whether a step of A log pi of it alone, by all weights, raises or
    lowers the sum of log pi of the replies with a positive one. Each of `predictors` makes of A a number for every decision, with
    the columns "old", "policy.entropy" and "policy.hidden" before the step.

    auc.X: mean over groups of the chance that a decision which raises it has a higher number by X than one which lowers it.
    lowers: share of these decisions that lower it; n: groups in which some raise and some lower it.  length: of the step, the norm
    of the change of all weights.  Rows without a reward are left out, and the policy is put back as it was.
    """
    found: dict[str, list[float]] = {name: [] for name in predictors}
    lowers: list[bool] = []
    groups = rollout(list(problems), run)
    for group, scores in zip(groups, reward(groups, run), strict=True):
        batch = judged_batch(group, scores, run, credit, ("entropy", "hidden"))
        effect = None if batch is None else _effect(batch, run, length)
        if batch is None or effect is None:
            continue
        chosen = batch.mask & (batch.credit < 0) & (effect != 0)
        raised = (effect[chosen] > 0).tolist()
        lowers += [not x for x in raised]
        for name, predictor in predictors.items():
            if not math.isnan(auc := auc_of([*zip(predictor(batch.credit, batch, run)[chosen].tolist(), raised, strict=True)])):
                found[name].append(auc)
    if not all(found.values()):
        raise RewardlabError(
            f"likelihood_foretold: in no group of {len(problems)} problems do some wrong tokens raise right replies, others not"
        )
    numbers = {f"auc.{name}": float(np.mean(aucs)) for name, aucs in found.items()}
    return {**numbers, "lowers": float(np.mean(lowers)), "n": float(max(map(len, found.values())))}


@torch.enable_grad()
def _effect(batch: Batch, run: Run, length: float) -> Tensor | None:
    """(B, T) how a decision's update changes the right replies, up to a factor; None where there are none, or nothing moves."""
    right = batch.mask & (batch.credit > 0)
    if not bool(right.any()):
        return None
    # the product of two gradients is symmetric: one step for the right replies shows it for all decisions
    loss = -torch.where(right, run.policy.evaluate(batch).logprobs, 0.0).sum()
    with after_step(run.policy, loss, length) as moved, torch.no_grad():
        return batch.credit * (run.policy.evaluate(batch).logprobs - batch.old) if moved else None


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@credit(needs=("policy.hidden",), compares_rows=True)
def hidden_reward(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """(B, T) THR of every decision with an advantage; 0 for the others, and where no reply of the group is right."""
    decided = batch.mask[:, 1:]
    # the state one position before a token predicts it
    hidden, ids = batch.columns["policy.hidden"][:, :-1][decided], batch.ids[:, 1:][decided]
    advantage, group = a[:, 1:][decided], batch.group[:, None].expand(decided.shape)[decided]
    found = torch.zeros_like(advantage)
    for rows in (group == g for g in range(batch.groups)):
        if bool((advantage[rows] > 0).any()):
            found[rows] = run.policy.gradient_products(hidden[rows], ids[rows], advantage[rows] > 0)
    return torch.zeros_like(a).masked_scatter(torch.nn.functional.pad(decided, (1, 0)), found * advantage.sign())


@credit(needs=("policy.hidden",), compares_rows=True)
def steer_by_hidden_reward(
    a: Tensor, batch: Batch, run: Run, *, p: float = 0.1, beta: NonNegativeFloat | None = 1.0
) -> Tensor:  # fmt: skip
    """(1 + p sign(THR)) A where |THR| is beta times the least mean of a right reply, or more; 0 elsewhere.

    beta: 0 or None: no decision is left out, as in groups without a right reply.  Logs, of the decisions with an advantage,
    `thr_positive`, the share whose THR is positive, and `thr_kept`, the share that is not left out.
    """
    thr = hidden_reward()(a, batch, run)
    kept = torch.ones_like(batch.mask) if beta is None else thr.abs() >= beta * _least_right(thr, a, batch)[batch.group, None]
    if bool((where := batch.mask & (a != 0)).any()):
        run.log("thr_positive", float((thr[where] > 0).float().mean()))
        run.log("thr_kept", float(kept[where].float().mean()))
    return torch.where(kept, a * (1 + p * thr.sign()), 0.0)


def _least_right(thr: Tensor, a: Tensor, batch: Batch) -> Tensor:
    """(G,) the least mean, over its decisions, of a right reply's THR; 0 where no reply of the group is right."""
    right = batch.mask & (a > 0)
    mean = torch.where(right, thr, 0.0).sum(1) / right.sum(1).clamp(min=1)
    mean = torch.where(right.any(1), mean, math.inf)
    least = torch.full((batch.groups,), math.inf, dtype=a.dtype, device=a.device).scatter_reduce(0, batch.group, mean, "amin")
    return torch.where(least.isinf(), 0.0, least)


@credit(needs=("old",))
def surprise(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """-log pi: a proxy for what right replies do not share."""
    return torch.where(batch.mask, -batch.old, 0.0)


def token_hidden_reward(base: Recipe | None = None, *, p: float = 0.1, beta: float | None = 1.0) -> Recipe:
    """p: from -1 to 1; above 0 what makes right replies surer counts more, below 0 less, and what does not the other way round.
    beta: of tau; None: all tokens are trained.
    """
    base = base or grpo()
    return base.but(credit=base.required("credit") >> steer_by_hidden_reward(p=p, beta=beta))


fidelity = "reading"
left_out = "its own threshold on |THR|, which is not known: here that of the earlier paper of the same group"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
check = Check(
    says="THR tells better than a token's surprise which updates of wrong replies' tokens lower the likelihood of right replies",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.thr", direction="higher", margin=0.05,
    against="auc.surprise",
    by=likelihood_foretold(
        reward=correct(), credit=center() >> scale_by_std() >> to_go(),
        predictors={"thr": hidden_reward(), "surprise": surprise()}, rollout=independent(n=8),
    ),
    problems=100, steps=1, fault=Within("lowers", low=0.2, says="share of wrong replies' tokens whose update lowers right replies"),
    learns=None, start=None,
    finding="of two updates of a wrong reply's tokens, one that lowers right replies and one that does not, THR orders 85% "
    "rightly, and how surprising the token was 49%, which is chance. What weights by its sign do to learning is not tested",
)  # fmt: skip
baseline = "grpo"
