"""Rewards for making up tasks about programs, and for solving them."""

from __future__ import annotations

from statistics import fmean

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.tasks.programs import ProgramError

from .language import read_proposal, solves, triplet


@reward
def triplet_answer(trajectory: Trajectory) -> Score:
    """1 where the output, input or program that the reply states is right, whichever right one it is; of a proposal, where
    it is a task at all.
    """
    if "role" not in trajectory.problem.meta:
        return Score(None, why="the problem is not one of the task `triplets`")
    if _role(trajectory) == "solve":
        return _answered(trajectory, 0.0, 0.0)
    return _proposed(trajectory, 0.0, 0.0)


@reward(over="groups")
def solved_or_learnable(groups: list[Group], run: Run, *, wrong: float = -0.5, unreadable: float = -1.0) -> Scores:
    """Solvers: 1 if right, else `wrong`, or `unreadable`. Proposers: how learnable their task was,

        r = 0 if all its solvers or none of them were right, else 1 - the share that was;

    `wrong` where the program had no value, `unreadable` where the reply had no program. A proposal and the solutions of its task
    share `path[0]`, as the rollout `self_play` sets it. Zhao et al. 2025, arXiv:2505.03335
    """
    # a group of solvers shares path[0] with the proposal that made its task
    rates = {g[0].path[0]: fmean(_answered(t, 0.0, 0.0).total or 0.0 for t in g) for g in groups if _role(g[0]) == "solve"}
    return [
        [
            _answered(t, wrong, unreadable) if _role(t) == "solve" else _proposed(t, wrong, unreadable, rates.get(t.path[0], 0.0))
            for t in group
        ]
        for group in groups
    ]


def _role(t: Trajectory) -> str:
    return t.problem.meta["role"]


def _answered(t: Trajectory, wrong: float, unreadable: float) -> Score:
    try:
        right = solves(t.problem, t.reply)
    except ProgramError as e:
        return Score(unreadable, why=str(e))
    return Score(1.0 if right else wrong, why="right" if right else "wrong")


def _proposed(t: Trajectory, wrong: float, unreadable: float, solved: float | None = None) -> Score:
    """`solved`: the share of right solutions; None where the task was not tried, and any valid task earns 1."""
    try:
        program, inputs = read_proposal(t.problem, t.reply)
    except ProgramError as e:
        return Score(unreadable, why=str(e))
    try:
        triplet(program, inputs)
    except ProgramError as e:
        return Score(wrong, why=str(e))
    if solved is None:
        return Score(1.0, why="a task")
    return Score(0.0 if solved in (0.0, 1.0) else 1 - solved, why=f"solved by {solved:.0%}")
