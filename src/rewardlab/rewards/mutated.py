"""Line labels without annotators: reference programs with one line mutated, and the results of running them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Score, Scores, Trajectory, seed_of
from rewardlab.rewards.reward import reward

MUTANT, LINE = "mutant", "line"
"""The columns of a changed program, and of the place of the changed line among those that are not blank."""


def mutated_problems(
    groups: list[Group], run: Run, column: str, each: int, mutant: Callable[[str, random.Random], tuple[str, int] | None]
) -> list[Problem]:
    """`each` mutants of the program in a column of every problem, in the columns `mutant` and `line`; they depend on the step."""
    made = []
    for problem in {group[0].problem.key: group[0].problem for group in groups if group}.values():
        program = problem.meta.get(column)
        if not isinstance(program, str):
            continue
        for k in range(each):
            rng = random.Random(seed_of(run.seed, "mutants", run.moment, problem.key, k))
            if (found := mutant(program, rng)) is not None:
                made.append(replace(problem, meta={**problem.meta, MUTANT: found[0], LINE: found[1]}))
    return made


@reward(over="groups")
def line_labels(groups: list[Group], run: Run) -> Scores:
    """1 at the ends of the lines before the mutated one (the column `line`), and at its own whether the whole program is right.

    Replies are the mutants themselves, with steps marked at the ends of lines. Later lines get no label, and a program without a
    verdict none at all.
    """
    pairs = [zip(*both, strict=True) for both in zip(groups, run.verdicts(groups), strict=True)]
    return [[_labels(t, verdict) for t, verdict in row] for row in pairs]


def _labels(t: Trajectory, verdict: Score) -> Score:
    line = int(t.problem.meta[LINE])
    if verdict.value is None or line >= len(t.steps):
        return Score(None, why=verdict.why or "the changed line is not among the steps")
    return Score(steps=[*((at, 1.0) for at in t.steps[:line]), (t.steps[line], float(verdict.value >= 1.0))])
