"""STEER: damp each token's loss by the estimated change of policy entropy that its update causes.

    Omega = -A / pi_old * pi (1 - pi) (log pi + H);    loss = -lambda min(ratio A, clip(ratio) A),   lambda = exp(-k |Omega|)
    k = -log(least) / max |Omega|: the token that would change most weighs `least`, others more, up to 1

A likely token of a right reply, and an unlikely one of a wrong reply, lower the entropy; the other two raise it. Advantage,
probability and entropy decide together, so a rule by one or two of them (clipping higher, covariance of A and log pi) hits wrong
tokens too. Rises are damped as falls are: the entropy is held steady, not raised.

Hao et al. 2025, arXiv:2510.10150. Omega, weights, least = 0.8, floor 0.02 and the upper clip of 0.28 are those of the released
code and script (zz-haooo/STEER, b31df71, core_algos.py and run_exp.sh), whose sixteen updates per batch are four here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Credit, Problem, Recipe, Rollout, Run, credit, measure
from rewardlab.credit.entropy import damp_entropy_change, entropy_change
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import after_step, judged_batch
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat
from rewardlab.util.ranking import auc_of

# ----------------------------------------------------------------------------------------------------------------------
#
# Which decisions become surer by an update, and whether that can be told beforehand; the policy is put back as it was.


@measure
def entropy_change_foretold(
    problems: Sequence[Problem], run: Run, *, reward: Reward, credit: Credit, predictors: dict[str, Credit], rollout: Rollout,
    length: PositiveFloat = 0.01,
) -> dict[str, float]:  # fmt: skip
    """For each problem's group one step of -A log pi along its gradient, A by `credit`, and back again. Each of `predictors` makes
    of A a number for every decision, with the columns "old" and "policy.entropy" before the step.

    auc.X: mean over groups of the chance that a decision whose entropy rose has a higher number by X than one whose entropy fell.
    fell: share of the decisions whose entropy fell; change: the mean change, in nats; n: groups in which some rose and some fell.
    length: of the step, the norm of the change of all weights.  Rows without a reward are left out.
    """
    found: dict[str, list[float]] = {name: [] for name in predictors}
    changes: list[float] = []
    groups = rollout(list(problems), run)
    for group, scores in zip(groups, reward(groups, run), strict=True):
        batch = judged_batch(group, scores, run, credit, ("entropy",))
        change = None if batch is None else _change(batch, run, length)
        if batch is None or change is None:
            continue
        chosen = batch.mask & (batch.credit != 0)
        rose = (change[chosen] > 0).tolist()
        changes += change[chosen].tolist()
        for name, predictor in predictors.items():
            numbers = predictor(batch.credit, batch, run)[chosen].tolist()
            if not math.isnan(auc := auc_of([*zip(numbers, rose, strict=True)])):
                found[name].append(auc)
    if not changes or not all(found.values()):
        raise RewardlabError(f"entropy_change_foretold: no group of {len(problems)} problems has rewards that differ, or moved")
    numbers = {f"auc.{name}": float(np.mean(aucs)) for name, aucs in found.items()}
    fell, n = float(np.mean(np.array(changes) < 0)), float(max(map(len, found.values())))
    return {**numbers, "fell": fell, "change": float(np.mean(changes)), "n": n}


@torch.enable_grad()
def _change(batch: Batch, run: Run, length: float) -> Tensor | None:
    """(B, T) how the entropies change by a step of this length; None where the credit has no gradient."""
    loss = -torch.where(batch.mask, batch.credit * run.policy.evaluate(batch).logprobs, 0.0).sum()
    with after_step(run.policy, loss, length) as moved, torch.no_grad():
        return run.policy.evaluate(batch, ("entropy",)).entropy - batch.columns["policy.entropy"] if moved else None


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@credit(needs=("old",))
def covariance(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Minus (A - mean A)(log pi - mean log pi), by which others choose tokens to be clipped.  Cui et al. 2025, arXiv:2505.22617"""
    if not bool(batch.mask.any()):
        return torch.zeros_like(a)
    return torch.where(batch.mask, -(a - a[batch.mask].mean()) * (batch.old - batch.old[batch.mask].mean()), 0.0)


def steer_entropy_change(
    base: Recipe | None = None, *, least: float = 0.8, floor: float = 0.02, eps: float = 0.2, eps_high: float = 0.28
) -> Recipe:
    """least: weight of the token whose entropy would change most.  floor: of the largest change, below which all weigh more."""
    base = base or grpo().but(minibatches=4)
    return base.but(
        credit=base.required("credit") >> damp_entropy_change(least=least, floor=floor),
        objective=clipped_ratio(eps=eps, eps_high=eps_high), weighting=token_mean(),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "Omega of the policy at every update, with its maximum over a micro-batch: here it is found before the first, over the batch; "
    "and dual clip at 10"
)
data = Data(answer="the gold answer")

check = Check(
    says="which decisions become surer by an update is told better by the estimated change than by the covariance of A and log pi",
    versus=None, task="countdown:largest=30,habit=0.9", measure="auc.omega", direction="higher", margin=0.03,
    against="auc.covariance",
    by=entropy_change_foretold(
        reward=correct(), credit=center() >> scale_by_std() >> to_go(),
        predictors={"omega": entropy_change(), "covariance": covariance()}, rollout=independent(n=8),
    ),
    problems=200, steps=1, fault=Within("auc.covariance", high=0.9, says="how well the covariance tells rises from falls"),
    learns=None, start=None,
    finding="which decisions become surer is told by the estimate with an AUC of .57, by the covariance with .51; .50 is chance, "
    "and 1 certain. It is the better rule of the two, and neither foretells much",
)  # fmt: skip
baseline = "grpo"
