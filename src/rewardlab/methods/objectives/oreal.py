"""OREAL: right replies are cloned and wrong ones pushed down by the pass rate, at the tokens that a reward model finds decisive.

    loss = -mean over tokens of right replies of w+ F+ log pi - eta mean over those of wrong ones of w- F- pi/pi_old + beta KL
    F+ = (1 - p) n/(n-1),   F- = -p n/(n-1),    p: share of right ones of n replies, of which one right and one wrong are kept
    w+ = max(0, 2 sigmoid(m_t) - 1),   w- = max(0, 1 - 2 sigmoid(m_t)),    m_t: mean score of the tokens so far
    reward model: -[o log sigmoid(m_T) + (1 - o) log(1 - sigmoid(m_T))],   o the outcome,  m_T: mean score of all tokens

Cloning the best of n is all that is needed to learn the KL-regularised optimum from outcomes of 0 or 1. What is kept is half right
whatever p is, so wrong replies must be paid by p, or the two gradients do not agree. An outcome says nothing of where a long reply
went wrong: the scores of tokens, learnt from outcomes alone, do.

Lyu et al. 2025, arXiv:2502.06781. Weights, losses, n = 16, top_p = .9, eta = .5, beta = .01, and `freeze` steps in which the reward
model learns alone are those of the released trainer and oreal_w_tokenrm_OREAL-7B-SFT_seqlen16k.py (InternLM/OREAL, 0ad3635), which
weighs cloning by F+ too, and reads a token's score one position before it. With one update per batch pi/pi_old is 1, and its
gradient that of log pi, so both losses are policy gradients. (inferred): the reward model's rate; its learning on what is kept
alone follows the trainer. Its judge pays 1 and -1, so that F is twice as large there, and the KL half as heavy beside it; what has
no verdict is wrong there, and left out here. Left out: prompts repeated by their difficulty, and skills that are trained before.

Data: prompts with answers that a verifier compares.
"""

from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Learner, Loop, Recipe, Run, Update, credit, loop
from rewardlab.core.domain import NonNegativeFloat, NonNegativeInt
from rewardlab.credit.value import value_before
from rewardlab.evals.blame import outcome_critic_auc
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.labels import mean_label_cross_entropy
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.steps import correct_steps
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.one_of_each import JUDGED, PASS_RATE, right_of, right_wrong_pair

MODEL = "token_rm"


@credit
def by_pass_rate(a: Tensor, batch: Batch, run: Run, *, eta: NonNegativeFloat = 0.5, shaped: bool = True) -> Tensor:
    """F+ for right replies, eta F- for wrong ones, so scaled that a mean over all tokens is the sum of the two means.

    Of the problems' pass rates, which `right_wrong_pair` leaves.  shaped: false pays 1 and -eta.
    """
    judged, right = batch.rewarded.any(1), right_of(batch)
    seen = [(t.problem.meta[PASS_RATE], t.problem.meta[JUDGED]) for t, _ in batch.rows]
    p, n = torch.tensor(seen, dtype=a.dtype, device=a.device).unbind(1)  # (B,)
    shape = torch.where(right, 1 - p, -p) * n / (n - 1).clamp(min=1) if shaped else torch.where(right, 1.0, -1.0)
    paid = torch.zeros_like(a)
    for side, weight in ((right, 1.0), (~right, eta)):
        where = batch.mask & (judged & side)[:, None]
        paid = torch.where(where, weight * shape[:, None] * batch.mask.sum() / where.sum().clamp(min=1), paid)
    return paid


def decisive(scores: Tensor, mask: Tensor, right: Tensor) -> Tensor:
    """(B, T) w+ of the tokens of right rows and w- of those of wrong ones, from the scores of tokens (B, T)."""
    so_far = torch.where(mask, scores, 0.0).cumsum(1) / mask.cumsum(1).clamp(min=1)
    sure = 2 * torch.sigmoid(so_far) - 1
    return torch.where(right[:, None], sure, -sure).clamp(min=0)


@credit(needs=(f"{MODEL}.value",))
def at_decisive_tokens(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Times w+ or w-, by the scores that the reward model gave before it learns from these replies. Logs their mean."""
    judged = batch.rewarded.any(1)
    weight = decisive(value_before(batch.columns[f"{MODEL}.value"], batch.mask), batch.mask, right_of(batch))
    run.log("token_weight", float(weight[batch.mask & judged[:, None]].mean().nan_to_num()))
    return a * weight


@loop(inner="of")
def reward_model_first(recipe: Recipe, run: Run, ops: Any, *, freeze: NonNegativeInt, of: Loop | None = None) -> None:
    """In the first `freeze` steps the policy only samples, and second models alone learn.  of: how a step is taken then."""
    if run.step < freeze:
        ops.standard_step(recipe.but(objective=None))
        return
    of(recipe, run, ops) if of else ops.standard_step(recipe)


def oreal(
    base: Recipe | None = None, *, n: int = 16, top_p: float = 0.9, eta: float = 0.5, beta: float = 0.01, shaped: bool = True,
    tokens: bool = True, freeze: int = 10, reward_model: str = "value-head", rm_lr: float | None = None, rm_epochs: int = 1,
) -> Recipe:  # fmt: skip
    """eta: weight of wrong replies.  beta: of the KL.  shaped, tokens: false leaves out F, or the weights and their model.
    freeze: steps before the policy learns, if there is a model.  reward_model, rm_lr: what it starts from, its learning rate.
    """
    base = base or grpo().but(rollout=independent(n=n, top_p=top_p))
    loss = policy_gradient() + beta * kl_to_reference() if beta else policy_gradient()
    paid = by_pass_rate(eta=eta, shaped=shaped)
    kept = base.but(rollout=right_wrong_pair(of=base.required("rollout")), credit=paid, objective=loss, weighting=token_mean())
    if not tokens:
        return kept
    model = Recipe(objective=mean_label_cross_entropy(), update=Update(lr=rm_lr, epochs=rm_epochs, loss_kind="scorer"))
    also = (*base.also, Learner(MODEL, reward_model, model))
    return kept.but(credit=paid >> at_decisive_tokens(), also=also, loop=reward_model_first(freeze=freeze, of=base.loop))


SAMPLED = independent(n=4, steps="newline")
# by construction: the rival is its own start, before anything was learnt
claim = Claim(
    says="the scores of tokens, taught on outcomes alone, tell replies that have gone wrong from those that have not, midway",
    versus=None, task="arithmetic", measure="blame", direction="higher", margin=0.24, against="before.blame",
    settings={"n": 8, "freeze": 24, "reward_model": "value-head:surprise", "rm_epochs": 4},
    by=outcome_critic_auc(model=MODEL, steps=correct_steps(), rollout=SAMPLED), problems=100, steps=24,
    judge=Within("outcome", low=0.7, says="right replies above wrong ones, by the mean score"), learns=None, start=None,
    sanity=True, tried="arithmetic:biased=0.75,error=0.1, whose errors it finds likely: .50 after 40 steps; here .99 (one seed)",
)  # fmt: skip
baseline = "rloo"
