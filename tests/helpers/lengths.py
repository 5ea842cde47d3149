"""Replies of known length and verdict, for tests of rewards that read both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rewardlab.core import Problem, Recipe, Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.reward import reward

SAYS = {"r": "4", "w": "5", "?": "?"}
"""What is said by a reply that is right, wrong, or has no verdict."""


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if "?" in trajectory.reply else float(trajectory.reply.endswith("4"))


def reply(tokens: int | Sequence[int], says: str = "4", stop: str = "end", problem: Problem | None = None) -> Trajectory:
    """Two tokens of prompt and so many sampled ones, all different, or these."""
    ids = np.arange(tokens) if isinstance(tokens, int) else np.array(tokens)
    logprobs = np.zeros(len(ids), np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", ids.astype(np.int64), logprobs, logprobs, says))
    return Trajectory(problem or ask("2+2?", "4"), turns, stop)


def group_of(kinds: str, lengths: Sequence[int]) -> list[Trajectory]:
    """One reply for each letter: r(ight), w(rong), or ? without a verdict."""
    return [reply(n, SAYS[kind]) for kind, n in zip(kinds, lengths, strict=True)]


def run_at(step: int = 0, steps: int = 1, **fields) -> Run:
    return Run(policy=fields.pop("policy", None), step=step, steps=steps, verify=verify(), **fields)


def totals(recipe: Recipe, groups: list[list[Trajectory]], run: Run) -> list[list[float | None]]:
    return [[s.total for s in row] for row in recipe.reward(groups, run)]


def credits(recipe: Recipe, groups: list[list[Trajectory]], run: Run) -> list[float]:
    """The credit of each reply, which all its tokens share."""
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    assert not credit[~batch.mask].any()
    rows = [row[mask] for row, mask in zip(credit, batch.mask, strict=True)]
    assert all((row == row[0]).all() for row in rows)
    return [float(row[0]) for row in rows]
