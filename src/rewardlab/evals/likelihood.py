"""Which decisions' updates change the likelihood of the right replies, and whether that can be told beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Problem, Rollout, Run, measure
from rewardlab.core.domain import PositiveFloat
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import after_step, judged_batch
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of


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
