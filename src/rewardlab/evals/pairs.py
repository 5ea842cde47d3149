"""Accuracy of a reward model on pairs of replies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rewardlab.core import Batch, Problem, Run, Trajectory, measure

from .passk import mean_interval


def end_values(model, trajectories: Sequence[Trajectory], rows_at_once: int = 64) -> np.ndarray:
    """(n,) the value head's output at the last position of each text, without gradient."""
    values: list[np.ndarray] = []
    with torch.no_grad():
        for i in range(0, len(trajectories), rows_at_once):
            batch = _texts(trajectories[i : i + rows_at_once], model.device)
            table = model.evaluate(batch, ("value",)).value
            values.append(table.gather(1, (batch.length - 1)[:, None]).squeeze(1).cpu().numpy())
    return np.concatenate(values)


def _texts(trajectories: Sequence[Trajectory], device: torch.device) -> Batch:
    """The texts as a batch for a forward pass, right-padded."""
    length = torch.tensor([len(t) for t in trajectories], device=device)
    ids = torch.zeros(len(trajectories), int(length.max()), dtype=torch.long, device=device)
    for row, t in enumerate(trajectories):
        ids[row, : len(t)] = torch.from_numpy(t.ids).to(device)
    # a value head reads only ids and lengths, so the other columns are zeros
    zeros = torch.zeros(ids.shape, device=device)
    return Batch(ids, zeros.bool(), length, zeros, zeros, zeros.bool(), torch.arange(len(ids), device=device))


@measure
def pair_accuracy(problems: Sequence[Problem], run: Run, *, model: str = "reward") -> dict[str, float]:
    """Share of held-out pairs in which the chosen reply scores higher; ties count half."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in ("chosen", "rejected")]
    chosen, rejected = (end_values(run.models[model], side) for side in sides)
    # a model that gives every text the same value then gets 0.5, as guessing does
    wins = np.where(chosen == rejected, 0.5, chosen > rejected).astype(float)
    low, high = mean_interval(wins.tolist())
    return {"pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(wins))}
