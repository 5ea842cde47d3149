"""Accuracy of the model in training as a judge of held-out labelled solutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, measure
from rewardlab.data.solutions import Solution, verdict_in
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.process import Judged, first_errors, steps
from rewardlab.evals.reranked import auc_within
from rewardlab.settings.domain import PositiveFloat
from rewardlab.util.outputs import hidden_at, last_tokens, values

WORTH: dict[str, Callable[[np.ndarray], Any]] = {"min": np.min, "last": lambda x: x[-1], "product": np.prod, "mean": np.mean}
"""What a solution is worth, of the chances of its steps."""


@measure
def labelled_steps(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, model: str = "prm",
    kind: Literal["head", "generative", "implicit", "outcome-ratio"] = "head", words: tuple[str, str] = ("No", "Yes"),
    beta: PositiveFloat = 0.05, by: Literal["min", "last", "product", "mean"] = "min",
) -> dict[str, float]:  # fmt: skip
    """step_auc, and step_accuracy, brier, ece and first_error_f1 as in `evals/process.py`, of the solutions that `rollout` writes.

    step_auc is 1/2 where the held-out steps are all right or all wrong; where no step has a label, it is of the last ones by the
    verdicts on whole solutions (`right`). Where it is known of several solutions to a question
    whether they are right: chosen, how often the one that is worth most is; random, the share of right ones, which is what a random
    choice gets; best, how often there is a right one; by_auc, how often a right one is worth more than a wrong one to the same
    question, ties half.

    kind: how a step's chance is read; by outcome-ratio it is that of the solution up to its end.  words: of wrong and right.  beta:
    of ratios.  by: what a solution is worth, of its steps.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    if kind == "head":
        logits = _by_value(run.model(model), rows)
    elif kind == "generative":
        logits = _by_word(run, rows, words)
    else:
        logits = _by_ratio(run, rows, beta, sums=kind == "outcome-ratio")
    chances = [1 / (1 + np.exp(-np.clip(x, -60, 60))) for x in logits]
    verdicts = [verdict_in(t.problem.meta.get("right")) for t in rows]
    judged = [Judged(s, tuple(map(float, x))) for s, x in zip(_solutions(rows, verdicts), chances, strict=True)]
    found = steps(judged)
    named = {f"step_{name}" if name in ("auc", "accuracy") else name: x for name, x in found.items() if name != "right"}
    f1 = first_errors(judged).get("f1")
    told = {"step_auc": 0.5, **named, **({} if f1 is None else {"first_error_f1": f1}), "n": float(found["n"])}
    asked = [(t.problem.question, right) for t, right in zip(rows, verdicts, strict=True)]
    return told | chosen_among(asked, [float(WORTH[by](x)) for x in chances])


def chosen_among(solutions: Sequence[tuple[str, bool | None]], worth: Sequence[float]) -> dict[str, float]:
    """chosen, random, best and by_auc of `labelled_steps`; {} where no question has several solutions that are known to be right or
    wrong.  solutions: of each its question, and whether it is right."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    for (question, right), x in zip(solutions, worth, strict=True):
        if right is not None:
            groups.setdefault(question, []).append((x, bool(right)))
    several = [group for group in groups.values() if len(group) > 1]
    if not several:
        return {}
    chosen = [float(np.mean([right for x, right in group if x == max(group)[0]])) for group in several]
    low, high = mean_interval(chosen)
    auc = auc_within([[x for x, _ in group] for group in several], [[right for _, right in group] for group in several])
    return {
        "chosen": float(np.mean(chosen)), "ci95_low": low, "ci95_high": high, "questions": float(len(several)),
        "random": float(np.mean([np.mean([right for _, right in group]) for group in several])),
        "best": float(np.mean([any(right for _, right in group) for group in several])),
        **({} if math.isnan(auc) else {"by_auc": auc}),
    }  # fmt: skip


def _solutions(rows: Sequence[Trajectory], verdicts: Sequence[bool | None]) -> list[Solution]:
    """The solutions with their labels; where no step of any has one, the verdict on each is the label of its last step."""
    found = []
    for t in rows:
        steps, labels = t.problem.meta["steps"], t.problem.meta.get("labels")
        known = labels if labels and len(labels) == len(steps) else [None] * len(steps)
        found.append(Solution(t.problem.question, tuple(steps), tuple(known)))
    if any(label is not None for s in found for label in s.labels):
        return found
    ends = [None if right is None else float(right) for right in verdicts]
    return [replace(s, labels=(*s.labels[:-1], end)) for s, end in zip(found, ends, strict=True)]


def _by_value(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    return [v[list(t.steps)] for v, t in zip(values(model, rows), rows, strict=True)]


def _by_word(run: Run, rows: Sequence[Trajectory], words: tuple[str, str]) -> list[np.ndarray]:
    head = run.policy.vocabulary_head().detach().float()[last_tokens(run.policy.tokenizer, words)].cpu().numpy()
    # the state of a decision ends one position before it
    states = hidden_at(run.policy, rows, [[at - 1 for at in t.steps] for t in rows])
    # a bias is the last column
    wide = [np.pad(s, ((0, 0), (0, head.shape[1] - s.shape[1])), constant_values=1.0) for s in states]
    return [s @ (head[1] - head[0]) for s in wide]


def _by_ratio(run: Run, rows: Group, beta: float, sums: bool) -> list[np.ndarray]:
    """Of each step, or of all up to its end."""
    found = []
    for t, ours, theirs in zip(rows, run.policy.score(rows), run.model("reference").score(rows), strict=True):
        total = np.concatenate(([0.0], np.cumsum(np.where(t.mask, ours - theirs, 0.0), dtype=np.float64)))
        ends = [int(t.mask.argmax()), *(at + 1 for at in t.steps)]
        found.append(np.array([beta * (total[b] - (0.0 if sums else total[a])) for a, b in pairwise(ends)]))
    return found
