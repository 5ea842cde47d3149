"""Whether what a part has learnt from right replies tells right replies from wrong ones; the policy stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Credit, Problem, Rollout, Run, measure
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import paid_at_the_end
from rewardlab.util.ranking import auc_of


@measure
def learnt_auc(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, scorer: Credit, steps: PositiveInt = 150, rows: PositiveInt = 32
) -> dict[str, float]:
    """`scorer` gives decisions numbers and learns from right replies as it does: those to the first half of the problems, `rows` of
    them at each of `steps`. Then it scores the replies to the second half, all of which it is told are wrong.

    auc.scorer: mean over problems with right and wrong replies of the chance that a right one has the lower mean, over decisions
    whose number is not 0.  auc.entropy: the same of the policy's entropy.  n: problems.  Right is what the task's verifier says;
    replies without a verdict are left out, and those to which the scorer gives no number at all.
    """
    # without the verifier, so that the scorer goes by what it is told
    groups, aside = rollout(list(problems), run), replace(run, memory={}, verify=None)
    right = [[None if s.value is None else s.value >= 1 for s in row] for row in run.verify(groups, run)]
    judged = [[(t, ok) for t, ok in zip(*pair, strict=True) if ok is not None] for pair in zip(groups, right, strict=True)]
    half, device = len(judged) // 2, run.policy.device
    good = [t for row in judged[:half] for t, ok in row if ok]
    if not good:
        raise RewardlabError(f"learnt_auc: no reply to the first {half} problems is right, and {scorer} learns from such")
    for _ in range(steps):
        some = torch.randint(len(good), (min(rows, len(good)),), generator=run.rng("learnt_auc")).tolist()
        batch = paid_at_the_end([good[i] for i in some], [1.0] * len(some), len(some), device)
        scorer(batch.reward, batch, aside)
    found: dict[str, list[float]] = {"scorer": [], "entropy": []}
    for row in judged[half:]:
        if len({ok for _, ok in row}) == 2:
            batch = paid_at_the_end([t for t, _ in row], [0.0] * len(row), len(row), device)
            entropy = run.policy.evaluate(batch, ("entropy",)).entropy.detach()
            scored = scorer(batch.reward, batch, aside)
            # the mean of no number is not 0, the best there is
            known = (batch.mask & (scored != 0)).any(1).tolist()
            if len({ok for (_, ok), numbered in zip(row, known, strict=True) if numbered}) < 2:
                continue
            for name, table in (("scorer", scored), ("entropy", entropy)):
                means = row_means(table, batch.mask & (table != 0)).tolist()
                found[name].append(auc_of([(-x, ok) for x, (_, ok), numbered in zip(means, row, known, strict=True) if numbered]))
    if not found["scorer"]:
        raise RewardlabError(f"learnt_auc: none of {len(judged) - half} problems has both right and wrong replies to compare")
    return {**{f"auc.{name}": float(np.mean(aucs)) for name, aucs in found.items()}, "n": float(len(found["scorer"]))}


def row_means(table: Tensor, where: Tensor) -> Tensor:
    """(B,) the mean of each row of a table (B, T) where `where`; 0 where it is nowhere."""
    return torch.where(where, table, 0.0).sum(1) / where.sum(1).clamp(min=1)
