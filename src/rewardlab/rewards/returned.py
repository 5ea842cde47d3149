"""What reward functions return, checked: a list where there are several rollouts, and numbers or scores in it."""

from __future__ import annotations

from typing import Any

from rewardlab.core.score import Score, Term
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
    except (TypeError, ValueError) as e:
        raise RewardlabError(f"the reward {name} returned {str(x)[:80]!r}, not {expected}") from e
