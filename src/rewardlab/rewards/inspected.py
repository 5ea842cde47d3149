"""Verdicts on the steps of a solution, each after what a tool said of that step."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.data.values import list_of
from rewardlab.text.inspections import inspections_of, is_about

from .reward import reward


@reward(steps=True)
def grounded_verdicts(
    trajectory: Trajectory, *, tool: NonNegativeFloat = 0.5, steps: str = "steps", verdicts: str = "verdicts"
) -> list[tuple[int, float]] | Score:
    """For each step of the solution in the column `steps`, at the end of the reply with its verdict: 1 where that is its label, and
    `tool` more where a tool that was asked about this very step had answered before it.

    verdicts: the column of labels. A step without a verdict earns nothing, nor does a verdict without a step; an episode without
    any verdict earns 0.
    """
    labels, texts = (list_of(trajectory.problem.meta.get(column)) for column in (verdicts, steps))
    if not labels or not texts or len(labels) != len(texts):
        return Score(None, why=f"the problem has no columns {steps!r} and {verdicts!r} of the same length")
    paid: dict[int, float] = {}
    for said, label, text in zip(inspections_of(trajectory), labels, texts, strict=False):
        right = said.right == bool(label)
        paid[said.at] = paid.get(said.at, 0.0) + right * (1 + tool * is_about(said.call, str(text)))
    return list(paid.items()) or Score(0.0, why="no verdict")


@reward
def inspected(trajectory: Trajectory, *, verdicts: str = "verdicts") -> Score:
    """1 where every step has the verdict of its label in the column, and nothing besides; for episodes with a tool or without."""
    labels = list_of(trajectory.problem.meta.get(verdicts))
    if not labels:
        return Score(None, why=f"the problem has no list {verdicts!r}")
    said = [x.right for x in inspections_of(trajectory)]
    return Score(float(said == [bool(x) for x in labels]), why=f"{len(said)} verdicts on {len(labels)} steps")
