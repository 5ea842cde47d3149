"""Verdicts on the steps of a solution, lines "+" and "-", in an episode with a tool that is asked about the steps."""

from __future__ import annotations

from dataclasses import dataclass

from rewardlab.core import Trajectory

from .bm25 import words

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
