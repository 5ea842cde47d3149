"""Checks of what reward functions return: a list for several rollouts, with numbers or scores in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.core.score import Score, Term
from rewardlab.core.trajectory import Trajectory
from rewardlab.errors import RewardlabError


def rows_of(name: str, rows: Any, groups: int) -> list[Any]:
    """What a function returned for groups, as a list with an entry for each."""
    if isinstance(rows, str) or not hasattr(rows, "__iter__") or len(listed := list(rows)) != groups:
        raise RewardlabError(f"the reward {name} must return a list for each of {groups} groups; it returned {str(rows)[:80]!r}")
    return listed


def row_of(name: str, row: Any, rollouts: int, group: int) -> list[Any]:
    """What a function returned for a group, as a list with an entry for each rollout."""
    if isinstance(row, str | dict) or not hasattr(row, "__iter__"):
        raise RewardlabError(
            f"the reward {name} must return a list with a reward for each of the {rollouts} rollouts of group {group}; "
            f"it returned {str(row)[:80]!r}"
        )
    if len(listed := list(row)) != rollouts:
        raise RewardlabError(f"the reward {name} returned {len(listed)} rewards for the {rollouts} rollouts of group {group}")
    return listed


def is_ours(function: Callable) -> bool:
    """Whether a function is one of rewardlab's, and not the user's."""
    return function.__module__.startswith("rewardlab.")


def file_of(function: Callable) -> str:
    return inspect.unwrap(function).__code__.co_filename


def who_of(function: Callable) -> str:
    """How messages name a user's reward."""
    return f"the reward {function.__name__} of {file_of(function)}"


def scored(function: Callable, stepwise: bool, x: Any, trajectory: Trajectory, place: str) -> Score:
    """What a decorated function returned for a rollout, as a Score."""
    try:
        score = as_score(x, function.__name__, stepwise)
    except RewardlabError as e:
        if is_ours(function):
            raise
        raise RewardlabError(f"{e} ({file_of(function)}, {place})") from e
    if is_ours(function):
        return score
    if x is None:
        return replace(score, why=f"{who_of(function)} returned None for {place}")
    return check_steps(score, trajectory, who_of(function), place)


def check_steps(score: Score, trajectory: Trajectory, who: str, place: str) -> Score:
    """The score. Raises RewardlabError for a step reward at a position that no policy decided."""
    if steps := score.steps:
        decided = np.flatnonzero(trajectory.mask)
        known = set(decided.tolist())
        if (wrong := next((at for at, _ in steps if at not in known), None)) is not None:
            raise RewardlabError(
                f"{who} rewards position {wrong}, which the policy did not decide ({place}): it decided {_ranges(decided)}, "
                "where trajectory.mask is true"
            )
    return score


def _ranges(positions: np.ndarray) -> str:
    """Positions in words: 5 to 9 and 14 to 20."""
    if not len(positions):
        return "none"
    pieces = np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
    said = [f"{piece[0]} to {piece[-1]}" for piece in pieces]
    return " and ".join(said if len(said) < 4 else [*said[:2], "others"])


def blamed(who: str, error: Exception, place: str, hint: str = "") -> RewardlabError:
    """What to raise for an exception in a function of the user. who: the function, its file and the line."""
    return RewardlabError(f"{who}: {type(error).__name__}: {' '.join(str(error).split())} ({place}){hint}")


def as_score(x: Any, name: str, stepwise: bool) -> Score:
    """What a reward function returned for one rollout, as a Score with a named term."""
    if isinstance(x, Score):
        return x.named(name)
    expected = "a list of (token position, reward)" if stepwise else "a number, None or a Score"
    try:
        if stepwise:
            # Score(steps=()) would count as missing, but a rollout without any step has been judged
            return Score(terms={name: Term(None, tuple((int(t), float(r)) for t, r in x))})
        # float("1") would accept text, which is more likely a returned reply than a score
        if isinstance(x, str | bytes):
            raise TypeError
        return Score(None if x is None else float(x)).named(name)
    except (TypeError, ValueError, OverflowError) as e:
        raise RewardlabError(f"the reward {name} returned {str(x)[:80]!r}, not {expected}") from e
