"""Whether a flow of hidden states fitted to right replies tells right replies from wrong ones; the policy stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Problem, Rollout, Run, forward_batch, measure
from rewardlab.core.domain import PositiveFloat, PositiveInt, PositiveShare
from rewardlab.errors import RewardlabError
from rewardlab.policies.velocity import Flow, states_of, with_next
from rewardlab.util.ranking import auc_of


@measure
def deviation_auc(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, heights: tuple[float, ...] = (0.25, 0.5, 0.75),
    time: PositiveShare = 0.8, blocks: PositiveInt = 6, steps: PositiveInt = 300, rows: PositiveInt = 64, lr: PositiveFloat = 1e-3,
) -> dict[str, float]:  # fmt: skip
    """A flow learns from the right replies to the first half of the problems, and scores the replies to the second half.

    auc.deviation: mean over problems with right and wrong replies of the chance that a right one has the lower mean deviation.
    auc.entropy: the same of the policy's mean entropy.  fitted: the loss at the end, which is about 1 at the start.  n: problems.
    steps, rows, lr: of the fit.  Right is what the task's verifier says; replies without a verdict are left out.
    """
    groups = rollout(list(problems), run)
    right = [[None if s.value is None else s.value >= 1 for s in row] for row in run.verify(groups, run)]
    judged = [[(t, ok) for t, ok in zip(*pair, strict=True) if ok is not None] for pair in zip(groups, right, strict=True)]
    half = len(judged) // 2
    good = [t for row in judged[:half] for t, ok in row if ok]
    if not good:
        raise RewardlabError(f"deviation_auc: no reply to the first {half} problems is right, and a flow learns from such")
    rng, memory = run.rng("flow"), {}
    for _ in range(steps):
        some = torch.randint(len(good), (min(rows, len(good)),), generator=rng).tolist()
        batch = forward_batch([good[i] for i in some], run.policy.device)
        states = states_of(run.policy, batch, heights)
        flow = Flow(memory, states, blocks, lr, run.seed)
        loss = flow.learn(states, with_next(batch), time, rng)
    found: dict[str, list[float]] = {"deviation": [], "entropy": []}
    for row in judged[half:]:
        if len({ok for _, ok in row}) == 2:
            batch = forward_batch([t for t, _ in row], run.policy.device)
            entropy = row_means(run.policy.evaluate(batch, ("entropy",)).entropy.detach(), batch.mask)
            for name, means in (("deviation", _deviations(flow, run.policy, batch, heights, time, rng)), ("entropy", entropy)):
                found[name].append(auc_of([(-x, ok) for x, (_, ok) in zip(means.tolist(), row, strict=True)]))
    if not found["deviation"]:
        raise RewardlabError(f"deviation_auc: none of {len(judged) - half} problems has both right and wrong replies")
    numbers = {f"auc.{name}": float(np.mean(aucs)) for name, aucs in found.items()}
    return {**numbers, "fitted": loss, "n": float(len(found["deviation"]))}


@torch.no_grad()
def _deviations(flow: Flow, policy: Any, batch: Batch, heights: Sequence[float], time: float, rng: torch.Generator) -> Tensor:
    """(B,) the mean deviation of each row."""
    chosen = with_next(batch)
    scores = flow.deviations(states_of(policy, batch, heights), chosen, time, rng)
    return row_means(torch.zeros(chosen.shape, device=scores.device).masked_scatter(chosen, scores), chosen)


def row_means(table: Tensor, where: Tensor) -> Tensor:
    """(B,) the mean of each row of a table (B, T) where `where`; 0 where it is nowhere."""
    return torch.where(where, table, 0.0).sum(1) / where.sum(1).clamp(min=1)
