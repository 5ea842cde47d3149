"""Which decisions become surer by an update, and whether that can be told beforehand; the policy is put back as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Group, Problem, Rollout, Run, Score, measure
from rewardlab.core.domain import PositiveFloat
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of

from .gradients import paid_at_the_end


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
        judged = [(t, s) for t, s in zip(group, scores, strict=True) if s.total is not None and t.mask.any()]
        if len(judged) < 2:
            continue
        batch = _batch([t for t, _ in judged], [s for _, s in judged], run)
        batch.credit = credit(batch.reward, batch, run)
        change = _change(batch, run, length)
        if change is None:
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


def _batch(rows: Group, scores: Sequence[Score], run: Run) -> Batch:
    """One group with its rewards on its last decisions, and what the policy says of it before the step."""
    batch = paid_at_the_end(rows, [float(s.total or 0.0) for s in scores], len(rows), run.policy.device)
    with torch.no_grad():
        out = run.policy.evaluate(batch, ("logprobs", "entropy"))
    return replace(batch, old=out.logprobs, columns={"policy.entropy": out.entropy})


@torch.enable_grad()
def _change(batch: Batch, run: Run, length: float) -> Tensor | None:
    """(B, T) how the entropies change by a step of this length; None where the credit has no gradient."""
    policy = run.policy
    weights = [p for p in policy.parameters() if p.requires_grad]
    loss = -torch.where(batch.mask, batch.credit * policy.evaluate(batch).logprobs, 0.0).sum()
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients if g is not None))
    if not norm > 0:
        return None
    before = {name: value.clone() for name, value in policy.state().items()}
    try:
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                if gradient is not None:
                    weight -= length / norm * gradient
            return policy.evaluate(batch, ("entropy",)).entropy - batch.columns["policy.entropy"]
    finally:
        policy.load_state(before)
