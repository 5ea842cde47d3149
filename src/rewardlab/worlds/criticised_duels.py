"""Duels of which some training rows bring a critique: what tells the two replies apart, as a person who checks everything says it.

    We need corn. Wishes: polite, urgent, signed.       A: we need corn please today      B: Ann we need corn
    critique             polite + - urgent + - signed - +       (of sums: 12+5=17 17-3=14 A + B -)

It stands in `critique` where the better reply is A, and in `critique_reversed` where it is B. All held-out rows have both.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, uniform_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.worlds.duels import Kinds, duels, fulfilled

ARGUMENT = r"\w+ [+-] [+-]|\S+=\d+|A [+-] B [+-]"
"""An argument of a small judge: a wish with a sign for each reply, a step of a sum, or which reply has its result."""
COLUMNS = ("critique", "critique_reversed")


def criticised_duels(
    *, kinds: Kinds = "both", criticised: Share = 0.5, size: PositiveInt | None = None, test_size: PositiveInt = 500
) -> Task:
    """The pairs of `duels`, the policy that is as careless as there, and critiques.

    criticised: the share of training rows with critiques.
    """
    plain = duels(kinds=kinds, size=size, test_size=test_size)
    return replace(
        plain, name="criticised_duels", train=Paired(plain.train, partial(_criticised, share=criticised)),
        test=all_paired(plain.test, partial(_criticised, share=1.0)), columns=(*plain.columns, *COLUMNS),
        about="duels with critiques that say what tells the replies apart",
    )  # fmt: skip


def _criticised(problem: Problem, _: random.Random, *, share: float) -> Problem:
    if uniform_of("criticised_duels", problem.key) >= share:
        return problem
    pair = (problem.meta["chosen"], problem.meta["rejected"])
    told = {column: critique(problem, *pair[::step]) for column, step in zip(COLUMNS, (1, -1), strict=True)}
    return replace(problem, meta={**problem.meta, **told})


def critique(problem: Problem, first: str, second: str) -> str:
    """The wishes that one of the replies alone fulfils; of a sum, its steps and who has the result."""
    if problem.meta["kind"] == "sums":
        signs = ["+" if reply == str(problem.answer) else "-" for reply in (first, second)]
        return " ".join([*problem.meta["steps"], f"A {signs[0]} B {signs[1]}"])
    found = [(wish, fulfilled(first, wish), fulfilled(second, wish)) for wish in problem.meta["wishes"]]
    return " ".join(f"{wish} {'+ -' if a else '- +'}" for wish, a, b in found if a != b)
