"""Whether a reward is worth as much as the truth, on average over replies that are right and over those that are wrong."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.data.values import kind_in
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


@measure
def reward_bias(problems: Sequence[Problem], run: Run, *, reward: Reward, rollout: Rollout, by: str = "") -> dict[str, float]:
    """How far the terms of `reward` are, in the mean, from the verdict of the task's verifier, over what `rollout` samples.

    bias.X: of the term X, the root of the mean over cells of (mean of X - verdict)^2; a cell is the replies of one verdict, 0 or 1,
    to one kind of prompts, as the column `by` tells them; without it all are one kind.  deviation.X: the root mean square of X
    around the mean of its cell: the noise that averaging must take out.  n: replies.  Replies without a verdict are left out.
    """
    if run.verify is None:
        raise RewardlabError("reward_bias needs the task's verifier, and this run has none: name a task")
    # a reward may remember what it has seen: held-out problems must not change what it pays in training
    aside = replace(run, memory=copy.deepcopy(run.memory))
    groups = rollout(list(problems), aside)
    cells: dict[tuple[str, str, float], list[float]] = {}
    for group, scores, verdicts in zip(groups, reward(groups, aside), aside.verify(groups, aside), strict=True):
        for t, score, verdict in zip(group, scores, verdicts, strict=True):
            if score.missing or verdict.value is None:
                continue
            for name, term in score.terms.items():
                if term.value is not None:
                    cell = (name, kind_in(t.problem.meta, by), float(verdict.value >= 1.0))
                    cells.setdefault(cell, []).append(term.value)
    if not cells:
        raise RewardlabError(f"reward_bias: {reward} or the verifier gave no verdict on any reply to {len(problems)} problems")
    found: dict[str, float] = {"n": float(max(sum(len(x) for (m, _, _), x in cells.items() if m == n) for n, _, _ in cells))}
    for name in {name: None for name, _, _ in cells}:
        own = [(np.array(x), truth) for (term, _, truth), x in cells.items() if term == name]
        found[f"bias.{name}"] = float(np.sqrt(np.mean([(x.mean() - truth) ** 2 for x, truth in own])))
        around = np.concatenate([x - x.mean() for x, _ in own])
        found[f"deviation.{name}"] = float(np.sqrt((around**2).mean()))
    return found
