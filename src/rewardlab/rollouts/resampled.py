"""Rollouts that sample some prompts again, in place of others that taught nothing."""

from __future__ import annotations

import math

import numpy as np
import torch

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt
from rewardlab.rewards.reward import Reward


# prompts are sampled from all of the step's, so processes cannot share them
@rollout(inner="of", across_problems=True)
def resampled_by_value(problems: list[Problem], run: Run, *, of: Rollout, reward: Reward, attempts: PositiveInt = 2) -> list[Group]:
    """The groups sampled by `of`, where those whose replies all earn the same are replaced by new groups for other prompts.

    These are sampled from the prompts of the step that have a signal, with replacement, in proportion to their value:
    (1 - mean reward) times the standard deviation of the rewards, which `reward` pays from 0 to 1. If no group has a signal, all
    are returned. Replies without a verdict do not count.
    attempts: how often at most prompts are sampled, the first time included; a step uses the groups that it has then.
    """
    groups = of(problems, run)
    kept, known = _with_signal(groups, reward, run)
    run.log("without_signal", 1 - len(kept) / max(1, len(groups)))
    if not kept:
        return groups
    for _ in range(attempts - 1):
        missing = len(problems) - len(kept)
        if missing <= 0:
            break
        chosen = torch.multinomial(torch.tensor([v for _, v in known]), missing, True, generator=run.rng("value")).tolist()
        kept += _with_signal(of([known[i][0] for i in chosen], run), reward, run)[0]
    return kept


def _with_signal(groups: list[Group], reward: Reward, run: Run) -> tuple[list[Group], list[tuple[Problem, float]]]:
    """The groups whose rewards differ, and the prompt of each with its value."""
    scores = [[s.total for s in row if s.total is not None] for row in reward(groups, run)]
    values = [(group, value) for group, row in zip(groups, scores, strict=True) if (value := value_of(row))]
    return [group for group, _ in values], [(group[0].problem, value) for group, value in values]


def value_of(rewards: list[float]) -> float:
    """Difficulty times uncertainty of a prompt whose replies earned this; 0 where they all earned the same."""
    if len(set(rewards)) < 2:
        return 0.0
    # a graded reward may be 1 in the mean of rewards that differ in the last digit: any signal has some value
    return max(1 - min(1.0, float(np.mean(rewards))), math.ulp(1.0)) * float(np.std(rewards))
