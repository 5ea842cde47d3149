"""Which decisions become surer by an update, and whether that can be told beforehand; the policy is put back as it was."""

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
