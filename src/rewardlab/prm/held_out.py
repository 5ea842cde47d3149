"""What a new scorer of steps is chosen by and what it is measured on, and what whoever reads its figures must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.core import uniform_of
from rewardlab.data.solutions import Solution

ENOUGH = 40
"""Held-out solutions from which on one half chooses the checkpoint and the other measures it: halves of fewer tell too little."""
FEW = 100
"""Held-out steps with a label below which figures are told to be rough: their error is about .1."""


def halves(held_out: Sequence[Solution]) -> tuple[list[Solution], list[Solution]]:
    """The solutions that choose the best step of training, and those that are measured afterwards: those of other problems where
    there are enough, else the same."""
    chosen_by = [s for s in held_out if _chooses(s)]
    measured = [s for s in held_out if not _chooses(s)]
    if len(held_out) < ENOUGH or 4 * min(len(chosen_by), len(measured)) < len(held_out):
        return list(held_out), list(held_out)
    return chosen_by, measured


def _chooses(s: Solution) -> bool:
    """By a hash of its own, which is independent of which problems are held out."""
    return uniform_of("chosen by", s.prompt) < 0.5


def notes(exported: Mapping[str, Any], found: Mapping[str, Any], chosen_by: Sequence[Solution], same: bool) -> dict[str, str]:
    """`warning`: nothing was learnt, or worse than nothing; `note`: of which solutions the figures are.

    exported: what `export` says of the step that is saved.  found: the figures.  same: whether these are also those
    that are measured.
    """
    told = []
    auc = found["steps"].get("auc")
    if exported.get("step") == 0:
        told.append(
            "no evaluation was above the one before training: what is saved is the model as it began, untrained. Take more "
            "--steps, another --lr, or more labels"
        )
    if auc is not None and auc <= 0.5:
        told.append(
            f"its AUC of held-out steps is {auc:.2f}, where chance is .50: it tells right steps from wrong ones "
            + ("no better than chance" if auc == 0.5 else "the wrong way round")
        )
    n = int(found["steps"].get("n", 0))
    note = (
        f"the step of training that is saved was chosen by the same {len(chosen_by)} solutions, so that these figures flatter it"
        if same
        else f"the step of training that is saved was chosen by {len(chosen_by)} other held-out solutions"
    )
    few = f"; {n} steps with a label are few: the figures are rough" if n < FEW else ""
    return ({"warning": ". ".join(told)} if told else {}) | {"note": f"{note}{few}"}
