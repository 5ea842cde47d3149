"""Checks of environments' return values, with errors that name environment, problem and turn."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rewardlab.core.problem import Message, Problem
from rewardlab.core.trajectory import Trajectory
from rewardlab.errors import RewardlabError


def place_of(episode: Trajectory) -> str:
    """The problem and the turn that an episode is at, in words."""
    return f"problem {episode.problem.question[:60]!r}, turn {len(episode.replies)}"


def start_of(problem: Problem) -> str:
    """The place before the first turn of a problem, in words."""
    return f"problem {problem.question[:60]!r}, its start"


def check_answer(answer: Any, name: str, place: str) -> tuple[Message | None, Any]:
    """The message, with ? for each half of a surrogate pair, and the state that an environment returned, or a RewardlabError."""

    def refuse(says: str) -> RewardlabError:
        return RewardlabError(f"the environment {name} {says} ({place})")

    if not isinstance(answer, tuple) or len(answer) != 2:
        raise refuse(f"must return a message, or None, and its state: return Message(...), state; it returned {repr(answer)[:60]}")
    message, state = answer
    if message is None:
        return None, state
    if not isinstance(message, Message):
        raise refuse(f"must return a Message or None before its state, not {repr(message)[:60]}: Message('user', text)")
    if not all(isinstance(text, str) for text in (message.role, message.text, *message.results)):
        raise refuse(f"returned a message whose role or text is no text: {repr((message.role, message.text))[:80]}")
    if message.reward is not None and not _finite(message.reward):
        raise refuse(f"returned a message whose reward is {message.reward!r}, not a finite number or None")
    text, *results = (said.encode("utf-8", "replace").decode() for said in (message.text, *message.results))
    return replace(message, text=text, results=tuple(results)), state


def _finite(x: Any) -> bool:
    try:
        return not isinstance(x, str | bytes) and math.isfinite(x)
    except (TypeError, OverflowError):
        return False
