"""Chains of arithmetic for three roles: generator, critic and refiner.

    Start with 7. Add 5. Multiply by 3.   Verify.                   Refine.
                                          Start with 7. ...         Start with 7. ...
                                          7+5=13                    7+5=13
                                          13*3=39                   13*3=39
                                          Answer: 39                Answer: 39
                                                                    7+5=13 no 7+5=12
                                                                    13*3=39
                                                                    Answer: 39
                                                                    Conclusion: wrong
    7+5=13                                7+5=13 no 7+5=12          7+5=12
    13*3=39                               13*3=39                   12*3=36
    Answer: 39                            Answer: 39                Answer: 36
                                          Conclusion: wrong

The small policy has read careless replies in all three roles.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, ProblemSource, Task, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.slips import APPLY, Step, fits
from rewardlab.tasks.sources import Shuffled
from rewardlab.text.roles import to_improve, to_verify
from rewardlab.worlds.critiques import criticised
from rewardlab.worlds.verdicts import worked

MARK = " no "
ROLES = ("generator", "verifier", "refiner")


def drafts(
    *, shown: Literal["questions", "roles"] = "questions", difficulty: PositiveInt = 3, error: Share = 0.1, biased: Share = 0.75,
    doubt: Share = 0.2, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `difficulty` steps, as in `arithmetic`.

    shown: the training problems: "questions", or, as the small policy has read them, what the three "roles" read, in turn.
    error, biased: of the teacher who solves, and goes on after a correction.  doubt: how often the one who criticises slips in
    what he takes a step to be.  size: so many training problems, in epochs; None: endless.
    """
    if shown not in ("questions", "roles"):
        raise RewardlabError(f"drafts: shown is questions or roles, not {shown!r}")
    if not 0 <= doubt <= 1:
        raise RewardlabError(f"drafts: doubt is a probability between 0 and 1, not {doubt}")
    of = arithmetic(difficulty=difficulty, error=error, biased=biased, test_size=test_size, size=size)
    assert of.demonstrate is not None
    train: Any = of.train if shown == "questions" else InTurn(of.train, of.demonstrate, doubt)
    return replace(
        of, name="drafts", train=train if shown == "questions" or size is None else Shuffled([train[i] for i in range(size)]),
        # the longest reply is a critique in which every step is put right
        max_new=24 * (difficulty + 2), about="chains of arithmetic for a solver, a critic and one who refines", pass_rate=None,
        demonstrate=partial(_demonstrate, solve=of.demonstrate), warmup_steps=2000, window=(0.2, 0.6), shared=False,
        warmed_as=None if shown == "roles"
        else f"drafts:shown=roles,difficulty={difficulty},error={error},biased={biased},doubt={doubt}",
    )  # fmt: skip


@dataclass(frozen=True)
class InTurn:
    """What the three roles read, in turn. To the critic and the refiner the column `solution` says what a careless teacher says."""

    questions: ProblemSource
    solve: Any
    doubt: float

    def __getitem__(self, position: int) -> Problem:
        at, role = divmod(position, 3)
        problem = self.questions[at]
        if role == 0:
            return problem
        rng = random.Random(seed_of("drafts", role, problem.key))
        attempt = self.solve(problem, rng)
        critique = criticise(problem, attempt, self.doubt, rng)
        if role == 1:
            asked, reply = to_verify(problem, attempt), critique
        else:
            asked, reply = to_improve(problem, attempt, critique), refine(problem, critique, self.solve, rng)
        return replace(asked, meta={**asked.meta, "solution": reply, "role": ROLES[role]})


def criticise(problem: Problem, attempt: str, doubt: float, rng: random.Random) -> str:
    """The critique of an attempt by one who takes the right result of a step for another now and then, or overlooks a wrong one."""
    *steps, answer = attempt.splitlines()
    pairs = zip(steps, worked(problem.meta["steps"], steps), strict=True)
    should = [_doubted(step, want, rng) if rng.random() < doubt else want for step, want in pairs]
    return criticised(steps, should, answer)


def _doubted(step: str, want: str, rng: random.Random) -> str:
    """What a careless critic takes a step to be: a wrong step passes, a right one is off by a little."""
    if step != want:
        return step
    left, _, result = want.rpartition("=")
    return f"{left}={rng.choice([value for off in (-10, -1, 1, 10) if (value := int(result) + off) >= 0])}"


def refine(problem: Problem, critique: str, solve: Any, rng: random.Random) -> str:
    """The attempt up to the first step that the critique puts right, that step as the critique has it, and the rest anew."""
    lines = critique.splitlines()
    gold = problem.meta["steps"]
    for i, line in enumerate(lines[: len(gold)]):
        _, marked, step = line.partition(MARK)
        if not marked:
            continue
        value, rest = int(step.rpartition("=")[2]), [_operation(g) for g in gold[i + 1 :]]
        # from a correction that is itself wrong the chain may not go on
        if fits(value, rest):
            begun = [*lines[:i], step]
            if not rest:
                return "\n".join([*begun, f"Answer: {value}"])
            sign, operand = rest[0]
            left = replace(problem, meta={"steps": [f"{value}{sign}{operand}=", *gold[i + 2 :]]})
            return "\n".join([*begun, solve(left, rng)])
    return "\n".join([*(line.partition(MARK)[0] for line in lines[: len(gold)]), lines[len(gold)]])


def _operation(step: str) -> Step:
    sign = next(sign for sign in APPLY if sign in step)
    return sign, int(step.partition("=")[0].split(sign)[1])


def _demonstrate(problem: Problem, rng: random.Random, *, solve: Any) -> str:
    """A careless solution; what is said in the other roles is careless already."""
    return problem.meta["solution"] if "role" in problem.meta else solve(problem, rng)
