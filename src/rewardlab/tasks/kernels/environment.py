"""Runs rewritten programs, answers with the error or the cost in operations, and lets the policy try again."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError

from .judge import judge

State = dict[str, Any]


def _start(problem: Problem, seed: int) -> tuple[Message | None, State]:
    fields = ("library", "inputs", "outputs", "cost")
    if not all(name in problem.meta for name in fields):
        raise RewardlabError(f"kernels needs {', '.join(fields)} in the meta of problem {problem.question[:60]!r}; use that task")
    return None, {name: problem.meta[name] for name in fields}


@environment(start=_start)
def cost_feedback(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers every program with its verdict. A text that is not a program ends the episode."""
    verdict = judge(turn.text, state)
    return (Message("user", str(verdict)) if verdict.read else None), state
