"""Whether a reward's advantages point in the direction of the true ones within groups, not only in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from rewardlab.core import Batch, Credit, Group, Problem, Rollout, Run, Score, measure
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.util.outputs import forward_batch

SAME = 1e-9
"""Rewards that differ by less are equal."""


@measure
def advantage_cosine(problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Reward, rollout: Rollout) -> dict[str, float]:
    """Over groups of replies sampled by `rollout` that `truth` tells apart: the cosine of the reward's and the true advantages;
    nothing is trained.

    cosine.X: mean over groups of the cosine of the two, each less its mean, for the term X with its steps, in the direction of its
    weight; 0 where the term pays all alike.  signal.X: share of groups in which the term pays two replies differently.  n: groups.

    Two rewards can order all pairs alike and differ here: by how much they pay. A reply without a verdict by `truth`, or by one of
    the terms, is left out.  Raises RewardlabError where no group is left.
    """
    groups = rollout(list(problems), run)
    tables: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for row, true in zip(reward(groups, run), truth(groups, run), strict=True):
        for name in {name: None for s in row for name in s.terms}:
            pairs = [(_paid(s, name), t.total) for s, t in zip(row, true, strict=True)]
            known = np.array([pair for pair in pairs if None not in pair], float).reshape(-1, 2)
            if len(known) and np.ptp(known[:, 1]) > SAME:
                tables.setdefault(name, []).append((known[:, 0], known[:, 1]))
    if not tables:
        raise RewardlabError(f"advantage_cosine: {truth} tells no two replies to any of {len(problems)} problems apart")
    numbers = {f"cosine.{name}": float(np.mean([_cosine(x, y) for x, y in table])) for name, table in tables.items()}
    numbers |= {f"signal.{name}": float(np.mean([np.ptp(x) > SAME for x, _ in table])) for name, table in tables.items()}
    return {**numbers, "n": float(max(map(len, tables.values())))}


def _paid(score: Score, name: str) -> float | None:
    """A term's outcome and steps, turned round where it is a penalty; None where the reply, or the term, has no verdict."""
    term = score.terms.get(name)
    if score.missing or term is None or not term.numbers:
        return None
    return sum(term.numbers) * (-1 if term.weight is not None and term.weight < 0 else 1)


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y))) if np.abs(x).max() > SAME else 0.0


@measure
def advantage_variance(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, reward: Reward, credits: dict[str, Credit], tag: str = ""
) -> dict[str, float]:
    """variance.X: of the advantages that the credit X gives the decisions of rows with this tag (all rows without one), over all
    decisions of rows with a verdict; all credits see the same replies.  n: rows.
    """
    groups = rollout(list(problems), run)
    batch = scored_batch(groups, reward(groups, run), run.policy.device)
    chosen = torch.tensor([not tag or t.tag == tag for t, _ in batch.rows], device=batch.ids.device)
    where = batch.mask & (chosen & batch.rewarded.any(1))[:, None]
    if not bool(where.any()):
        raise RewardlabError(f"advantage_variance: no row of {rollout}{f' with the tag {tag!r}' if tag else ''} has a verdict")
    found = {f"variance.{name}": float(chain(batch.reward, batch, run)[where].var()) for name, chain in credits.items()}
    return {**found, "n": float(where.any(1).sum())}


def scored_batch(groups: Sequence[Group], scores: Sequence[Sequence[Score]], device: torch.device) -> Batch:
    """A batch of these groups with all that they earn, where it was earned."""
    flat = [(t, s) for row in zip(groups, scores, strict=True) for t, s in zip(*row, strict=True)]
    batch = forward_batch([t for t, _ in flat], device)
    reward, rewarded = torch.zeros_like(batch.old), torch.zeros_like(batch.mask)
    for i, (t, s) in enumerate(flat):
        last = [(int(np.flatnonzero(t.mask)[-1]), s.value)] if s.has_outcome and s.value is not None and t.mask.any() else []
        for at, paid in [*last, *s.steps]:
            reward[i, at] += paid
            rewarded[i, at] = True
    group = torch.repeat_interleave(torch.arange(len(groups)), torch.tensor([len(g) for g in groups])).to(device)
    return replace(batch, reward=reward, rewarded=rewarded, group=group, rows=flat)
