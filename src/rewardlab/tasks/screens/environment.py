"""Screens that are clicked on, and say what was reached."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError

from .language import last_click
from .problems import inside, shown

State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not {"screens", "targets"} <= problem.meta.keys():
        raise RewardlabError(f"clicks needs the columns screens and targets: problem {problem.question[:60]!r} lacks them")
    return None, {"screens": list(problem.meta["screens"]), "targets": list(problem.meta["targets"]), "at": 0}


@environment(start=_start)
def clicks(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the last click of a reply: 1 and the next screen if it is in the box that is meant, else 0, and the end.

    The first screen is in the prompt. The last message has no text, and carries the reward alone.
    """
    said, at = last_click(turn.text), state["at"]
    hit = said is not None and inside(said[0], said[1], state["screens"][at][state["targets"][at]])
    if not hit or at + 1 == len(state["targets"]):
        return Message("user", "", reward=float(hit), last=True), state
    return Message("user", shown(state["screens"][at + 1]), reward=1.0), {**state, "at": at + 1}
