"""Accuracy of a judge of solution steps: first errors, single steps, calibration, and PRMBench's categories.

A step is judged right if its chance is above the threshold (at 1/2 itself wrong, as argmax over two labels has it). A label from 0
to 1 counts as right from 1/2 up. Steps without a label are left out; of first errors, nothing after one is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.data.solutions import Solution
from rewardlab.evals.calibration import BINS, expected_calibration_error
from rewardlab.evals.judges import first_error, first_error_accuracies
from rewardlab.util.ranking import auc_of

THRESHOLD = 0.5
LENGTHS = (4, 8, 16)
"""Solutions are grouped by their steps: up to 4, up to 8, up to 16, and more."""
PRMBENCH = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""The categories of PRMBench by their group, as its files spell them."""


@dataclass(frozen=True)
class Judged:
    """A solution with labels, and a model's chance that each of its steps is right."""

    solution: Solution
    chances: tuple[float, ...]

    @property
    def pairs(self) -> list[tuple[float, bool]]:
        """(chance, right) of each step that has a label."""
        both = zip(self.chances, self.solution.labels, strict=True)
        return [(chance, label >= 0.5) for chance, label in both if label is not None]

    @property
    def known(self) -> bool:
        """Whether the place of the first error is known, or that there is none."""
        error = self.solution.first_error
        return all(label is not None for label in self.solution.labels[:error])


def first_errors(judged: Sequence[Judged], threshold: float = THRESHOLD) -> dict[str, float]:
    """ProcessBench's figures (Zheng et al. 2024, arXiv:2412.06559): how often the first step judged wrong is the first wrong one.

    error_accuracy: of solutions with a wrong step.  correct_accuracy: of those without, that no step is judged wrong.  f1: their
    harmonic mean, only where there are both kinds.  Solutions with a step without a label before the first error are left out.
    """
    known = [j for j in judged if j.known]
    gold = [[label is None or label >= 0.5 for label in j.solution.labels] for j in known]
    clean, flawed = first_error_accuracies(gold, [[chance > threshold for chance in j.chances] for j in known])
    errors = sum(first_error(steps) is not None for steps in gold)
    found: dict[str, float] = {"n_error": errors, "n_correct": len(gold) - errors}
    found |= {"error_accuracy": flawed} if errors else {}
    found |= {"correct_accuracy": clean} if errors < len(gold) else {}
    if 0 < errors < len(gold):
        found["f1"] = harmonic(clean, flawed)
    return found


def harmonic(a: float, b: float) -> float:
    """The harmonic mean of two shares; 0 where both are."""
    return 2 * a * b / (a + b) if a + b else 0.0


def best_threshold(judged: Sequence[Judged], tries: int = 100) -> float:
    """The threshold with the highest F1 of first errors, among quantiles of all chances; the middle one of equally good ones."""
    chances = [chance for j in judged for chance in j.chances]
    candidates = sorted({THRESHOLD, *np.quantile(chances, np.linspace(0, 1, tries)).tolist()}) if chances else [THRESHOLD]
    f1 = [first_errors(judged, at).get("f1", 0.0) for at in candidates]
    best = [at for at, value in zip(candidates, f1, strict=True) if value == max(f1)]
    return float(best[len(best) // 2])


def steps(judged: Sequence[Judged], threshold: float = THRESHOLD) -> dict[str, float]:
    """Of single steps with a label.

    auc: how often a right step has a higher chance than a wrong one, ties half; left out unless there are both.  accuracy: judged
    as labelled.  brier: mean of (chance - right)^2.  ece: expected calibration error, of ten bins.
    """
    pairs = [pair for j in judged for pair in j.pairs]
    if not pairs:
        return {"n": 0}
    chance, right = np.array([c for c, _ in pairs], float), np.array([ok for _, ok in pairs], bool)
    auc = auc_of(pairs)
    return {
        "n": len(pairs), "right": float(right.mean()), **({} if math.isnan(auc) else {"auc": auc}),
        "accuracy": float(((chance > threshold) == right).mean()), "brier": float(((chance - right) ** 2).mean()),
        "ece": expected_calibration_error(chance.tolist(), right.tolist()),
    }  # fmt: skip


def reliability(judged: Sequence[Judged]) -> list[dict[str, float]]:
    """For each tenth of the chances that has steps: its lower end, their number, mean chance, and the share that is right."""
    pairs = [pair for j in judged for pair in j.pairs]
    chance, right = np.array([c for c, _ in pairs], float), np.array([ok for _, ok in pairs], float)
    # the bins of `expected_calibration_error`
    bins = np.minimum(np.floor(np.round(chance * BINS, 9)).astype(int), BINS - 1)
    return [
        {"from": b / BINS, "n": int((bins == b).sum()), "chance": float(chance[bins == b].mean()),
         "right": float(right[bins == b].mean())}
        for b in sorted(set(bins.tolist()))
    ]  # fmt: skip


def by_position(judged: Sequence[Judged], threshold: float = THRESHOLD, last: int = 12) -> list[dict[str, Any]]:
    """The figures of `steps` for the first step, the second, ...; from the step `last` on together."""
    groups: dict[str, list[Judged]] = {}
    for j in judged:
        for k, (chance, label) in enumerate(zip(j.chances, j.solution.labels, strict=True), 1):
            name = str(k) if k < last else f"{last}+"
            groups.setdefault(name, []).append(Judged(Solution("", ("",), (label,)), (chance,)))
    order = sorted(groups, key=lambda name: int(name.rstrip("+")))
    return [{"step": name, **steps(groups[name], threshold)} for name in order]


def by_length(judged: Sequence[Judged], threshold: float = THRESHOLD) -> list[dict[str, Any]]:
    """The figures of `steps`, and of first errors, for solutions of few and of many steps."""
    limits = [*LENGTHS, math.inf]
    names = [*(f"up to {n}" for n in LENGTHS), f"over {LENGTHS[-1]}"]
    groups = [[j for j in judged if low < len(j.chances) <= high] for low, high in zip([0, *LENGTHS], limits, strict=True)]
    return [
        {"steps in it": name, **steps(group, threshold), **first_errors(group, threshold)}
        for name, group in zip(names, groups, strict=True) if group
    ]  # fmt: skip


def prmbench(judged: Sequence[Judged], threshold: float = THRESHOLD) -> dict[str, Any]:
    """PRMBench's figures (Song et al. 2025, arXiv:2501.03124) of solutions whose meta names a `classification`.

    prm_score: (F1 of right steps + F1 of wrong steps) / 2, over the steps of all flawed solutions; for each category (of
    multi_solutions, which has no wrong steps, the F1 of right ones); and for each group of categories the mean of theirs.
    first_error: how often the first wrong step is judged wrong, whatever is said of the steps before it (another figure than
    ProcessBench's). An F1 without any step that is or is said to be so counts as 0. Solutions without errors ("original",
    "correct") are in none of these.
    """
    kinds: dict[str, list[Judged]] = {}
    for j in judged:
        kind = str(j.solution.meta.get("classification") or "")
        if kind not in ("", "original", "correct"):
            kinds.setdefault(kind, []).append(j)
    categories = {kind: _of_category(group, threshold) for kind, group in sorted(kinds.items())}
    groups = {
        name: float(np.mean([categories[kind]["prm_score"] for kind in members if kind in categories]))
        for name, members in PRMBENCH.items() if any(kind in categories for kind in members)
    }  # fmt: skip
    return {**_of_category([j for group in kinds.values() for j in group], threshold), "groups": groups, "categories": categories}


def _of_category(judged: Sequence[Judged], threshold: float) -> dict[str, float]:
    firsts = [j.chances[at] <= threshold for j in judged if (at := j.solution.first_error) is not None]
    first = {"first_error": float(np.mean(firsts))} if firsts else {}
    return {"n": len(judged), **prm_score(**confusion(judged, threshold)), **first}


def confusion(judged: Sequence[Judged], threshold: float = THRESHOLD) -> dict[str, float]:
    """Numbers of steps with a label. tp: right, and said to be; fp: wrong, and said to be right; tn and fn: said to be wrong."""
    pairs = [(chance > threshold, right) for j in judged for chance, right in j.pairs]
    kinds = {"tp": (True, True), "fp": (True, False), "tn": (False, False), "fn": (False, True)}
    return {name: float(sum(pair == kind for pair in pairs)) for name, kind in kinds.items()}


def prm_score(tp: float, fp: float, tn: float, fn: float) -> dict[str, float]:
    """PRMBench's score of numbers of steps, and the two F1 that it is the mean of: of right steps and (negative_f1) of wrong ones.
    Where no step is wrong it is the F1 of right steps, as in the tables of the paper. An F1 of nothing is 0."""
    f1, negative = (2 * hits / (2 * hits + fp + fn) if hits + fp + fn else 0.0 for hits in (tp, tn))
    return {"prm_score": (f1 + negative) / 2 if fp + tn else f1, "f1": f1, "negative_f1": negative}


def figures(judged: Sequence[Judged], threshold: float = THRESHOLD) -> dict[str, Any]:
    """All of these, for a report."""
    parts: dict[str, Callable[..., Any]] = {
        "first_error": first_errors, "steps": steps, "by_position": by_position, "by_length": by_length,
    }  # fmt: skip
    found: dict[str, Any] = {name: part(judged, threshold) for name, part in parts.items()}
    found["reliability"] = reliability(judged)
    categorised = any(j.solution.meta.get("classification") not in (None, "", "original", "correct") for j in judged)
    return found | ({"prmbench": prmbench(judged, threshold)} if categorised else {})
