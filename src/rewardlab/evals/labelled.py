"""Accuracy of the model in training as a judge of held-out labelled solutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, measure
from rewardlab.data.solutions import Solution
from rewardlab.evals.process import Judged, first_errors, steps
from rewardlab.settings.domain import PositiveFloat
from rewardlab.util.outputs import forward_batch, values


@measure
def labelled_steps(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, model: str = "prm",
    kind: Literal["head", "generative", "implicit"] = "head", words: tuple[int, ...] = (), beta: PositiveFloat = 0.05,
) -> dict[str, float]:  # fmt: skip
    """step_auc, and step_accuracy, brier, ece and first_error_f1 as in `evals/process.py`, of the solutions that `rollout` writes.

    step_auc is 1/2 where the held-out steps are all right or all wrong.  kind: how a step's chance is read.  words: the tokens of
    wrong and right.  beta: of implicit rewards.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    read = {"head": _by_value, "generative": lambda r, x: _by_word(r, x, words), "implicit": lambda r, x: _by_ratio(r, x, beta)}
    logits = read[kind](run if kind != "head" else run.model(model), rows)  # type: ignore[operator]
    judged = [_judged(t, 1 / (1 + np.exp(-np.clip(x, -60, 60)))) for t, x in zip(rows, logits, strict=True)]
    found = steps(judged)
    named = {f"step_{name}" if name in ("auc", "accuracy") else name: x for name, x in found.items() if name != "right"}
    f1 = first_errors(judged).get("f1")
    return {"step_auc": 0.5, **named, **({} if f1 is None else {"first_error_f1": f1}), "n": float(found["n"])}


def _judged(t: Trajectory, chances: np.ndarray) -> Judged:
    meta = t.problem.meta
    return Judged(Solution(t.problem.question, tuple(meta["steps"]), tuple(meta["labels"])), tuple(float(x) for x in chances))


def _by_value(model: object, rows: Group) -> list[np.ndarray]:
    return [v[list(t.steps)] for v, t in zip(values(model, rows), rows, strict=True)]


def _by_word(run: Run, rows: Group, words: tuple[int, ...]) -> list[np.ndarray]:
    head = run.policy.vocabulary_head().detach().float()[list(words)]
    found = []
    for t in rows:
        with torch.no_grad():
            hidden = run.policy.evaluate(forward_batch([t], run.policy.device), ("hidden",)).hidden[0]
        states = hidden[[at - 1 for at in t.steps]]
        # a bias is the last column
        states = np.pad(states.cpu().numpy(), ((0, 0), (0, head.shape[1] - states.shape[1])), constant_values=1.0)
        found.append(states @ (head[1] - head[0]).cpu().numpy())
    return found


def _by_ratio(run: Run, rows: Group, beta: float) -> list[np.ndarray]:
    found = []
    for t, ours, theirs in zip(rows, run.policy.score(rows), run.model("reference").score(rows), strict=True):
        sums = np.concatenate(([0.0], np.cumsum(np.where(t.mask, ours - theirs, 0.0), dtype=np.float64)))
        ends = [int(t.mask.argmax()), *(at + 1 for at in t.steps)]
        found.append(np.array([beta * (sums[b] - sums[a]) for a, b in pairwise(ends)]))
    return found
