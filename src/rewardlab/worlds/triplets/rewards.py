"""Rewards for proposers and solvers of tasks about programs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.tasks.programs import ProgramError

from . import language, python
from .triplet import Triplet

Judged = bool | Triplet | ProgramError
"""Of a solution, whether it is right; of a proposal, its task; or why there is neither."""


@reward(over="groups")
def triplet_answer(groups: list[Group]) -> Scores:
    """1 where the output, input or program that the reply states is right, whichever right one it is; of a proposal, where
    it is a task at all.
    """
    rows = [t for group in groups for t in group if "role" in t.problem.meta]
    judged = iter(_judged(rows))

    def score(t: Trajectory) -> Score:
        if "role" not in t.problem.meta:
            return Score(None, why="the problem is not one of the task `triplets`")
        return _answered(next(judged), 0.0, 0.0) if _role(t) == "solve" else _proposed(next(judged), 0.0, 0.0)

    return [[score(t) for t in group] for group in groups]


@reward(over="groups")
def solved_or_learnable(groups: list[Group], run: Run, *, wrong: float = -0.5, unreadable: float = -1.0) -> Scores:
    """Solvers: 1 if right, else `wrong`, or `unreadable`. Proposers: how learnable their task was,

        r = 0 if all its solvers or none of them were right, else 1 - the share that was;

    `wrong` where the program had no value, `unreadable` where the reply had no program. A proposal and the solutions of its task
    share `path[0]`, as the rollout `self_play` sets it. Zhao et al. 2025, arXiv:2505.03335
    """
    flat = iter(_judged([t for group in groups for t in group]))
    table = [[next(flat) for _ in group] for group in groups]
    # a group of solvers shares path[0] with the proposal that made its task
    solvers = [(g[0].path[0], row) for g, row in zip(groups, table, strict=True) if _role(g[0]) == "solve"]
    rates = {at: fmean(float(x[0] is True) for x in row) for at, row in solvers}
    return [
        [
            _answered(x, wrong, unreadable) if _role(t) == "solve" else _proposed(x, wrong, unreadable, rates.get(t.path[0], 0.0))
            for t, x in zip(*both, strict=True)
        ]
        for both in zip(groups, table, strict=True)
    ]


def _role(t: Trajectory) -> str:
    return t.problem.meta["role"]


def _judged(rows: Sequence[Trajectory]) -> list[tuple[Judged, bool]]:
    """Of each row its verdict or task, and whether the reply could be read; all programs of a language run together."""
    found: dict[int, tuple[Judged, bool]] = {}
    for name, world in (("list", language), (python.PYTHON, python)):
        own = [i for i, t in enumerate(rows) if t.problem.meta.get("language", "list") == name]
        solving = [i for i in own if _role(rows[i]) == "solve"]
        verdicts = world.solved([(rows[i].problem, rows[i].reply) for i in solving])
        found |= {i: (x, not isinstance(x, ProgramError)) for i, x in zip(solving, verdicts, strict=True)}
        stated: dict[int, tuple[str, list[str]]] = {}
        for i in own:
            if _role(rows[i]) != "solve":
                try:
                    stated[i] = world.read_proposal(rows[i].problem, rows[i].reply)
                except ProgramError as why:
                    found[i] = why, False
        found |= {i: (x, True) for i, x in zip(stated, world.made(list(stated.values())), strict=True)}
    return [found[i] for i in range(len(rows))]


def _answered(judged: tuple[Judged, bool], wrong: float, unreadable: float) -> Score:
    verdict, readable = judged
    if not readable:
        return Score(unreadable, why=str(verdict))
    return Score(1.0 if verdict is True else wrong, why="right" if verdict is True else "wrong")


def _proposed(judged: tuple[Judged, bool], wrong: float, unreadable: float, solved: float | None = None) -> Score:
    """`solved`: the share of right solutions; None where the task was not tried, and any valid task earns 1."""
    task, readable = judged
    if not isinstance(task, Triplet):
        return Score(wrong if readable else unreadable, why=str(task))
    if solved is None:
        return Score(1.0, why="a task")
    return Score(0.0 if solved in (0.0, 1.0) else 1 - solved, why=f"solved by {solved:.0%}")
