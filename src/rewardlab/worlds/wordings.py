"""Chains of arithmetic in two wordings, as a list of steps and as a story, on which a policy makes different mistakes.

    list:   Begin with 7. Add 5. Multiply by 3. Subtract 4.
    story:  Ann has 7 coins. Finds 5. Makes it 3 times as many. Loses 4.

    7+5=12
    12*3=36
    36-4=32
    Answer: 32

Every problem has its other wording in the column `rewrite`, as a file has whose questions a model was asked to put in other words.
"""

from __future__ import annotations

import random
import re
from functools import partial
from typing import Literal

from rewardlab.core import Problem, ProblemSource, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.slips import Careless, Step
from rewardlab.tasks.sources import test_set, training

STEP = re.compile(r"(\d+)([-+*])(\d+)=")
NAMES = ("Ann", "Ben", "Eve", "Tom")
# not quite the words of `arithmetic`: its training problems, from which chains are taken, would never be held out here
TELL = {
    "list": {"": "Begin with {n}.", "+": "Add {n}.", "-": "Subtract {n}.", "*": "Multiply by {n}."},
    "story": {"": "{name} has {n} coins.", "+": "Finds {n}.", "-": "Loses {n}.", "*": "Makes it {n} times as many."},
}
RULES = {"list": "-", "story": "+*"}
"""The signs for which the teacher follows its wrong rule, by wording."""


def wordings(
    *, difficulty: PositiveInt = 4, biased: Share = 0.8, error: Share = 0.05, told: Literal["both", "list", "story"] = "both",
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `difficulty` steps over 0..99; each is asked in one of the two wordings, and has the other as its `rewrite`.

    told: the wording of the questions; "both": either, by chance.
    The teacher of `demonstrate`, as probabilities per step: biased: follows a wrong rule where it applies: in lists it forgets to
    borrow, in stories to carry, and takes 4 and 5 times for 3 and 4 times. So what a policy says most often is wrong in one wording
    and right in the other.  error: a near miss.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"wordings: {name} is a probability between 0 and 1, not {share}")
    if told not in ("both", *TELL):
        raise RewardlabError(f"wordings: told is both, list or story, not {told!r}")
    chains, asked = arithmetic(difficulty=difficulty, test_size=1).train, tuple(TELL) if told == "both" else (told,)
    sample, key = partial(_sample, chains=chains, told=asked), ("wordings", difficulty, told)
    return Task(
        name="wordings",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=max(64, 12 * (difficulty + 1)),
        about=f"chains of {difficulty} arithmetic steps over 0..99, as a list and as a story",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "rewrite", "steps", "solution"),
        step_verifier="sound_steps",
        warmed_as=None if told == "both" else f"wordings:difficulty={difficulty},biased={biased},error={error}",
    )


def _sample(rng: random.Random, *, chains: ProblemSource, told: tuple[str, ...]) -> Problem:
    # the source is endless: any number is the position of a chain
    chain, name, asked = chains[rng.getrandbits(40)], rng.choice(NAMES), rng.choice(told)
    said = {wording: _told(chain.meta["steps"], wording, name) for wording in TELL}
    other = next(text for wording, text in said.items() if wording != asked)
    return ask(said[asked], chain.answer, rewrite=other, **chain.meta)


def _program(steps: list[str]) -> tuple[int, list[Step]]:
    """The start of a chain, and its operations."""
    read = [match.groups() for match in map(STEP.match, steps) if match]
    return int(read[0][0]), [(sign, int(operand)) for _, sign, operand in read]


def _told(steps: list[str], wording: str, name: str) -> str:
    start, operations = _program(steps)
    return " ".join(TELL[wording][sign].format(n=n, name=name) for sign, n in [("", start), *operations])


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    """The solution as a careless teacher writes it, by the mistakes of the wording that is asked."""
    value, operations = _program(problem.meta["steps"])
    wording = "list" if problem.question.startswith("Begin") else "story"
    teacher, lines = Careless(error, biased, RULES[wording]), []
    for i, (sign, operand) in enumerate(operations):
        left, value = value, teacher.result(value, sign, operand, operations[i + 1 :], rng)
        lines.append(f"{left}{sign}{operand}={value}")
    return "\n".join([*lines, f"Answer: {value}"])
