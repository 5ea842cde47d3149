"""Recorded solutions in steps, written as the scorers of `prm/` will read them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rewardlab.core import Group, Problem, Run, Trajectory, Turn, rollout
from rewardlab.errors import RewardlabError
from rewardlab.prm.generative import judged_chat
from rewardlab.prm.head import chat_prompt, steps_after
from rewardlab.prm.scorer import Encoded


@rollout(rows=lambda **_: 1)
def labelled(
    problems: list[Problem], run: Run, *, layout: Literal["steps", "chat"] = "steps", separator: str = "\n"
) -> list[Group]:
    """One row per problem: the solution in `meta["steps"]`, as if the policy had written it, with the ends of its steps marked.

    layout: steps, each closed by the separator; or a chat in which the policy says Yes after each, where the steps "end". Tokens
    are those of the scorers `head` and `generative`, so that a model is later read as it learnt.
    """
    rows = [_steps(p, run, separator) if layout == "steps" else _chat(p, run) for p in problems]
    for t in rows:
        run.policy.check_fits(t, 0)
    return [[t] for t in rows]


def solution_in(problem: Problem) -> list[str]:
    steps = problem.meta.get("steps")
    if not isinstance(steps, list | tuple) or not steps:
        raise RewardlabError(f"problem {problem.question[:60]!r} has no solution in `steps` to learn from")
    return list(steps)


def _steps(problem: Problem, run: Run, separator: str) -> Trajectory:
    tokenizer, steps = run.policy.tokenizer, solution_in(problem)
    row = steps_after(chat_prompt(tokenizer, problem.prompt), tokenizer, steps, separator)
    text = "".join(step + separator for step in steps)
    turns = (_turn(row.ids[: row.start], None, problem.question), _turn(row.ids[row.start :], run.policy.name, text))
    return replace(Trajectory(problem, turns, "end"), steps=tuple(row.at))


def _chat(problem: Problem, run: Run) -> Trajectory:
    row: Encoded = judged_chat(run.policy.tokenizer, problem.question, solution_in(problem))
    turns: list[Turn] = []
    # the word comes after the place where it is read
    for start, end in pairwise((0, *(at + 2 for at in row.at))):
        turns += [_turn(row.ids[start : end - 1], None, ""), _turn(row.ids[end - 1 : end], run.policy.name, "Yes")]
    return replace(Trajectory(problem, tuple(turns), "end"), steps=tuple(at + 1 for at in row.at))


def _turn(ids: list[int], author: Any, text: str) -> Turn:
    return Turn(author, np.asarray(ids, np.int64), text=text)
