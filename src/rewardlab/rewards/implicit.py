"""The reward that a model's likelihoods imply, relative to those of the model that it began as."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Group, Run, Score, Scores

from .reward import reward


@reward(over="groups")
def implicit_reward(groups: list[Group], run: Run, *, model: str = "policy", base: str = "reference") -> Scores:
    """log model(y)/base(y) of the decided tokens, in nats: how much likelier a reply is to a model than to the one it began as.

    It is DPO's reward without its factor beta (Rafailov et al. 2023, arXiv:2305.18290). A model that still is the base implies
    none: then it is the mean of log model(y) per token. No verdict on an empty reply.
    """
    rows = [t for group in groups for t in group]
    if not rows:
        return [[] for _ in groups]
    ours, theirs = (run.model(name).score(rows) for name in (model, base))
    own = [x[t.mask].astype(np.float64) for x, t in zip(ours, rows, strict=True)]
    ratios = [x - y[t.mask] for x, y, t in zip(own, theirs, rows, strict=True)]
    if all(np.abs(ratio).max(initial=0.0) < SAME for ratio in ratios):
        scores = [_score(x, float(x.mean()), "mean log-prob") if len(x) else _score(x, 0.0, "") for x in own]
    else:
        scores = [_score(x, float(x.sum()), "log-ratio") for x in ratios]
    found = iter(scores)
    return [[next(found) for _ in group] for group in groups]


SAME = 1e-6
"""Nats by which two passes of the same weights may differ."""


def _score(tokens: np.ndarray, value: float, why: str) -> Score:
    return Score(value, why=why) if len(tokens) else Score(None, why="the policy wrote nothing")
