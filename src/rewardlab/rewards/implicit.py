"""Implicit rewards: the log-ratio of a model to the model that it was trained from."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.splitters import mark


@reward(over="groups")
def implicit_reward(groups: list[Group], run: Run, *, model: str = "policy", base: str = "reference") -> Scores:
    """log model(y)/base(y) over the sampled tokens, in nats: the log-likelihood ratio of a model and the model it was trained from.

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


@reward(over="groups")
def implicit_steps(
    groups: list[Group], run: Run, *, model: str = "prm", base: str = "reference", beta: PositiveFloat = 0.05,
    form: Literal["gain", "value"] = "gain", splitter: Literal["newline", "paragraph", "tag", "sentence", "token"] = "newline",
) -> Scores:  # fmt: skip
    """At the end of each step, beta log model/base: of the step's own tokens (gain), or of all tokens up to there (value).

    If the model learnt from outcomes that the sum of this over a reply is its reward, the value q_k is what the reply may be
    expected to earn from there on, and the gain q_k - q_{k-1} a process reward (Yuan et al. 2024, arXiv:2412.01981).  Steps end
    where the splitter says, unless the rollout has marked them. No verdict on an empty reply.
    """
    policy = run.policy
    marked = [[t if t.steps else mark(t, splitter, policy.pieces, policy.name) for t in group] for group in groups]
    rows = [t for group in marked for t in group]
    if not rows:
        return [[] for _ in groups]
    ratios = (x - y for x, y in zip(run.model(model).score(rows), run.model(base).score(rows), strict=True))
    found = iter([_by_step(t, beta * ratio, form) for t, ratio in zip(rows, ratios, strict=True)])
    return [[next(found) for _ in group] for group in groups]


def _by_step(t: Trajectory, tokens: np.ndarray, form: str) -> Score:
    if not t.steps:
        return Score(None, why="the policy wrote nothing")
    values = np.cumsum(np.where(t.mask, tokens, 0.0), dtype=np.float64)[list(t.steps)]
    paid = values if form == "value" else np.diff(values, prepend=0.0)
    return Score(steps=[(at, float(x)) for at, x in zip(t.steps, paid, strict=True)])


SAME = 1e-6
"""Nats by which two passes of the same weights may differ."""


def _score(tokens: np.ndarray, value: float, why: str) -> Score:
    return Score(value, why=why) if len(tokens) else Score(None, why="the policy wrote nothing")
