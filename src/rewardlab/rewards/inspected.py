"""Verdicts on the steps of a solution, each after what a tool said of that step."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.data.values import list_of
from rewardlab.text.inspections import inspections_of, is_about

from .reward import reward


@reward
def grounded_verdicts(
    trajectory: Trajectory, *, tool: NonNegativeFloat = 1.0, steps: str = "steps", verdicts: str = "verdicts"
) -> Score:
    """The mean over the steps of the solution in the column `steps`: 1 where the verdict is the step's label, and `tool` more where
    a tool that was asked about this very step had answered before it.

    verdicts: the column of labels. A step without a verdict earns 0, as one with a wrong verdict does; a verdict without a step
    earns nothing. One number for the episode: of rewards at the ends of replies, a reply with three blind verdicts would hold the
    sum of three, and in the group's mean over such events three verdicts that were each looked up would count as less.
    """
    labels, texts = (list_of(trajectory.problem.meta.get(column)) for column in (verdicts, steps))
    if not labels or not texts or len(labels) != len(texts):
        return Score(None, why=f"the problem has no columns {steps!r} and {verdicts!r} of the same length")
    said = inspections_of(trajectory)
    right = [(x.right == bool(label), is_about(x.call, str(text))) for x, label, text in zip(said, labels, texts, strict=False)]
    return Score(sum(ok * (1 + tool * looked) for ok, looked in right) / len(labels), why=f"{len(said)} verdicts")


@reward
def inspected(trajectory: Trajectory, *, verdicts: str = "verdicts") -> Score:
    """1 where every step has the verdict of its label in the column, and nothing besides; for episodes with a tool or without."""
    labels = list_of(trajectory.problem.meta.get(verdicts))
    if not labels:
        return Score(None, why=f"the problem has no list {verdicts!r}")
    said = [x.right for x in inspections_of(trajectory)]
    return Score(float(said == [bool(x) for x in labels]), why=f"{len(said)} verdicts on {len(labels)} steps")
