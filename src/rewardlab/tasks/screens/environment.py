"""Screens that are clicked on, and say what was reached."""

from __future__ import annotations

import re
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError

from .problems import inside, shown

CLICK = re.compile(r"^click ([0-9]{1,5}) ([0-9]{1,5})$", re.MULTILINE)
State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not {"screens", "targets"} <= problem.meta.keys():
        raise RewardlabError(f"clicks needs the columns screens and targets: problem {problem.question[:60]!r} lacks them")
    return None, {"screens": list(problem.meta["screens"]), "targets": list(problem.meta["targets"]), "at": 0}


@environment(start=_start)
def clicks(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the last line "click X Y" of a reply: 1 and the next screen if it is in the box that is meant, else 0, and the end.

    The first screen is in the prompt. The last message has no text, and carries the reward alone.
    """
    said = CLICK.findall(turn.text)
    at = state["at"]
    hit = bool(said) and inside(int(said[-1][0]), int(said[-1][1]), state["screens"][at][state["targets"][at]])
    if not hit or at + 1 == len(state["targets"]):
        return Message("user", "", reward=float(hit), last=True), state
    return Message("user", shown(state["screens"][at + 1]), reward=1.0), {**state, "at": at + 1}
