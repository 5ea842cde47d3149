"""Rewards for the form of a reply."""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType

from rewardlab.core import RewardlabError, Score, Trajectory, reward
from rewardlab.kit.extraction import after_answer, boxed

SECONDS = 1.0
"""How long a pattern may search one reply."""


@reward
def format_ok(trajectory: Trajectory, *, pattern: str) -> Score:
    r"""1 where the whole reply matches the regular expression; a dot also matches a line break.

    E.g. pattern=r"<think>.+</think>\s*<answer>.+</answer>". A reply on which the pattern takes over a second gets 0.
    """
    try:
        compiled = re.compile(pattern, re.DOTALL)
    except re.error as e:
        raise RewardlabError(f"format_ok: the pattern {pattern!r} is not a regular expression: {e}") from e
    try:
        found = _within(compiled, trajectory.reply.strip())
    except TimeoutError:
        return Score(0.0, why=f"the pattern took over {SECONDS:g} s on this reply")
    return Score(float(found), why="well formed" if found else "does not match the pattern")


@reward
def answer_given(trajectory: Trajectory) -> Score:
    r"""1 where the reply states an answer, in \boxed{...} or after "answer"."""
    stated = boxed(trajectory.reply) or after_answer(trajectory.reply)
    return Score(float(bool(stated)), why="states an answer" if stated else "states no answer")


def _within(pattern: re.Pattern[str], text: str) -> bool:
    """Full match under a time limit: the matcher asks for signals while it backtracks. Signals need the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return pattern.fullmatch(text) is not None

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return pattern.fullmatch(text) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
