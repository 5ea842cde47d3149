"""OREAL: clone right replies and penalise wrong ones by the pass rate, with token weights from a token reward model.

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
gradient that of log pi, so both losses are policy gradients. The reward model learns on what is kept alone, as there, where its
rate is four times the policy's (`rm_lr`). Its judge pays 1 and -1, so that F is twice as large there, and the KL half as heavy
beside it; what has no verdict is wrong there, and left out here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Loop,
    Problem,
    Recipe,
    Rollout,
    Run,
    Score,
    Trajectory,
    Update,
    credit,
    loop,
    measure,
    rollout,
)
from rewardlab.credit.value import value_before
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.labels import mean_label_cross_entropy
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of

# ---- Whether a model that was taught on outcomes alone knows when a reply has gone wrong -----------------------------


@measure
def outcome_critic_auc(problems: Sequence[Problem], run: Run, *, model: str, steps: Reward, rollout: Rollout) -> dict[str, float]:
    """A model's values before the decisions of the replies that `rollout` samples, in the mean over each reply so far.

    blame: after the first step, the second and so on, each but a reply's last, the AUC with which this number is higher where no
    step was wrong yet; the mean over these places.  outcome: the AUC with which it is higher at the end of right replies than of
    wrong ones.  n: replies with a verdict and with steps.  A half is chance; replies are compared at the same place, so that to
    fall or rise with every token is worth nothing.  steps: a reward of steps, 0 or less for a wrong one; the rollout marks their
    ends.  Raises RewardlabError if at no place some replies are still right and others not.
    """
    groups = rollout(list(problems), run)
    places: dict[int, list[tuple[float, bool]]] = {}
    ends: list[tuple[float, bool]] = []
    for group, scores, verdicts in zip(groups, steps(groups, run), run.verify(groups, run), strict=True):
        for t, score, verdict, value in zip(group, scores, verdicts, values(run.model(model), group), strict=True):
            if verdict.value is None or score.missing or not score.steps:
                continue
            decided, so_far = _so_far(t, value)
            ends.append((float(so_far[-1]), verdict.value >= 1))
            for k, (at, sound) in enumerate(_sound(score)):
                places.setdefault(k, []).append((float(so_far[np.searchsorted(decided, at, side="right")]), sound))
    known = [auc for row in places.values() if not math.isnan(auc := auc_of(row))]
    if not known:
        raise RewardlabError(f"blame: of the replies to {len(problems)} problems none goes wrong where another does not")
    return {"blame": float(np.mean(known)), "outcome": auc_of(ends), "n": float(len(ends))}


def _so_far(t: Trajectory, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the decisions, and at each the mean of the values before this one and those before it."""
    decided = np.flatnonzero(t.mask)
    return decided, np.cumsum(value[np.maximum(decided - 1, 0)]) / np.arange(1, len(decided) + 1)


def _sound(score: Score) -> list[tuple[int, bool]]:
    """Where each step but the last ends, and whether it and all before it are right."""
    paid = [x > 0 for _, x in score.steps]
    return [(at, all(paid[: k + 1])) for k, (at, _) in enumerate(score.steps[:-1])]


# ---- One right and one wrong reply to each problem, chosen among several ---------------------------------------------

PASS_RATE, JUDGED, RIGHT = "pass_rate", "judged", "right"


@rollout(wraps="inner")
def right_wrong_pair(problems: list[Problem], run: Run, *, inner: Rollout) -> list[Group]:
    """A right and a wrong reply at random from each group of `inner`; groups without both are dropped.

    What was seen of the whole group stays with the problem: meta["pass_rate"], the share of right replies, and meta["judged"], how
    many have a verdict, by the task's verifier; and meta["right"], which of the two this reply is (`right_of`). If no group has
    both, all are returned, so that a step always has a batch. Logs `pass_rate`, the mean over all groups with a verdict, and
    `mixed`, the share of groups that are kept. Lyu et al. 2025, arXiv:2502.06781
    """
    if run.verify is None:
        raise RewardlabError("right_wrong_pair needs the task's verifier, and this run has none: name a task, or leave it out")
    groups, rng, kept, rates = inner(problems, run), run.rng("one_of_each"), [], []
    whole: list[Group] = []
    for group, verdicts in zip(groups, run.verdicts(groups), strict=True):
        right = [i for i, v in enumerate(verdicts) if v.value is not None and v.value >= 1]
        wrong = [i for i, v in enumerate(verdicts) if v.value is not None and v.value < 1]
        judged = len(right) + len(wrong)
        rate = len(right) / max(1, judged)
        seen = [_with(t, {PASS_RATE: rate, JUDGED: judged, RIGHT: i in right}) for i, t in enumerate(group)]
        whole.append(seen)
        rates += [rate] if judged else []
        if right and wrong:
            kept.append([seen[int(side[torch.randint(len(side), (1,), generator=rng)])] for side in (right, wrong)])
    if rates:
        run.log("pass_rate", sum(rates) / len(rates))
    run.log("mixed", len(kept) / max(1, len(groups)))
    return kept or whole


def right_of(batch: Batch) -> Tensor:
    """(B,) bool: the replies that `right_wrong_pair` found right, which is what the verifier says and not what a reply earned: one
    that is partly right is wrong. Raises RewardlabError for replies that it has not seen.
    """
    found = [t.problem.meta.get(RIGHT) for t, _ in batch.rows]
    if None in found:
        raise RewardlabError("these replies are not told right from wrong: wrap the rollout in right_wrong_pair(inner=...)")
    return torch.tensor(found, dtype=torch.bool, device=batch.ids.device)


def _with(t: Trajectory, seen: dict[str, float | bool]) -> Trajectory:
    return replace(t, problem=replace(t.problem, meta={**t.problem.meta, **seen}))


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MODEL = "token_rm"
RM_LR_SCALE = 4.0
"""Of the reward model's rate, in the policy's: 2e-6 and 5e-7 in the released configuration."""


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
    """Multiply by w+ or w-, from the token scores of the reward model before its update. Logs their mean."""
    judged = batch.rewarded.any(1)
    weight = decisive(value_before(batch.columns[f"{MODEL}.value"], batch.mask), batch.mask, right_of(batch))
    run.log("token_weight", float(weight[batch.mask & judged[:, None]].mean().nan_to_num()))
    return a * weight


@loop(wraps="inner", first=("freeze",))
def reward_model_first(
    recipe: Recipe, run: Run, ops: Any, *, freeze: NonNegativeInt, model: str = MODEL, model_lr_scale: PositiveFloat | None = None,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Train only the second models in the first `freeze` steps, while the policy samples.  inner: how a step is taken then.

    model_lr_scale: the learning rate of the second model `model`, as a multiple of the policy's; None: its own.
    """
    if model_lr_scale is not None:
        learner = ops.learners[model]
        learner.recipe = learner.recipe.but(lr=min(1.0, model_lr_scale * recipe.update.rate))
    if run.step < freeze:
        ops.standard_step(recipe.but(objective=None))
        return
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def oreal(
    base: Recipe | None = None, *, n: int = 16, top_p: float = 0.9, eta: float = 0.5, beta: float = 0.01, shaped: bool = True,
    tokens: bool = True, freeze: int = 10, reward_model: str = "value-head", rm_lr: float | None = None, rm_epochs: int = 1,
) -> Recipe:  # fmt: skip
    """eta: weight of wrong replies.  beta: of the KL.  shaped, tokens: false leaves out F, or the weights and their model.
    freeze: steps before the policy learns, if there is a model.  reward_model, rm_lr: what it starts from, its learning rate;
    None: four times the policy's.
    """
    base = base or grpo().but(rollout=independent(n=n, top_p=top_p))
    loss = policy_gradient() + beta * kl_to_reference() if beta else policy_gradient()
    paid = by_pass_rate(eta=eta, shaped=shaped)
    kept = base.but(rollout=right_wrong_pair(inner=base.required("rollout")), credit=paid, objective=loss, weighting=token_mean())
    if not tokens:
        return kept
    model = Recipe(objective=mean_label_cross_entropy(), update=Update(lr=rm_lr, epochs=rm_epochs, loss_kind="scorer"))
    also = (*base.also, Learner(MODEL, reward_model, model))
    loop = reward_model_first(freeze=freeze, model_lr_scale=RM_LR_SCALE if rm_lr is None else None, inner=base.loop)
    return kept.but(credit=paid >> at_decisive_tokens(), also=also, loop=loop)


fidelity = "core"
left_out = "prompts repeated by their difficulty, and the skills that are trained beforehand"
data = Data(answer="the gold answer")

SAMPLED = independent(n=4, steps="newline")
# by construction: the rival is its own start, before anything was learnt
check = Check(
    says="the scores of tokens, taught on outcomes alone, tell replies that have gone wrong from those that have not, midway",
    versus=None, task="arithmetic", measure="blame", direction="higher", margin=0.24, against="before.blame",
    settings={"n": 8, "freeze": 24, "reward_model": "value-head:surprise", "rm_epochs": 4},
    by=outcome_critic_auc(model=MODEL, steps=correct_steps(), rollout=SAMPLED), problems=100, steps=24,
    judge=Within("outcome", low=0.7, says="right replies above wrong ones, by the mean score"), learns=None, start=None,
    sanity=True, tried="arithmetic:biased=0.75,error=0.1, whose errors it finds likely: .50 after 40 steps; here .99 (one seed)",
    finding="midway, the scores tell replies that have gone wrong from those that have not with an AUC of .91, before teaching "
    ".50. Here errors are tokens that the policy finds unlikely; where it finds them likely the scores stay at chance",
)  # fmt: skip
baseline = "rloo"
