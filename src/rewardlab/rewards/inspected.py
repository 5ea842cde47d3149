"""Verdicts on the steps of a solution, each after what a tool said of that step."""

from __future__ import annotations

from dataclasses import dataclass

from rewardlab.core import Score, Trajectory
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.data.values import list_of
from rewardlab.text.bm25 import words

from .reward import reward

REFUSED = "Nothing."
SIGNS = {"+": True, "-": False}


@dataclass(frozen=True)
class Inspection:
    """The verdict on one step.  at: the position where its reply ends.  call: the tool call that was answered since the verdict
    before it, "" without one."""

    right: bool
    at: int
    call: str = ""


def inspections_of(t: Trajectory) -> list[Inspection]:
    """The verdicts of an episode, lines "+" or "-", in their order: the first is on the first step, and so on."""
    found, asked, call, position = list[Inspection](), "", "", 0
    ends = iter(t.ends)
    for turn in t.turns:
        position += len(turn.ids)
        lines = [line.strip() for line in turn.text.splitlines() if line.strip()]
        if turn.author is None:
            # a call that was refused says nothing, and before it is answered none does
            asked, call = "", "" if turn.text.strip() == REFUSED else asked
            continue
        at = next(ends)
        for line in lines:
            if line in SIGNS:
                found.append(Inspection(SIGNS[line], at, call))
                call = ""
            else:
                asked = line
    return found


def is_about(call: str, step: str) -> bool:
    """Whether what is asked for, after the name of the tool, stands in the step."""
    asked = words(call)[1:]
    return bool(asked) and set(asked) <= set(words(step))


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
