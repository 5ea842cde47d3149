"""Multiple choice from rules in the prompt: any two of a person's three signs decide, and one trait is a distractor.

The careless teacher mostly looks at one sign alone and takes the first name that it finds there; else it looks at two signs, which
is enough to be right, or at all three. Independently of that, it often concludes one name and then answers another. So an answer
may be right although its rationale skips what is known, or contradicts it: faults that a reward for the letter alone does not see.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

# ---- What a question and a rationale look like -----------------------------------------------------------------------
#
# - fever brin dask                           ->      - rash pell brin
# - rash pell brin                                    - fever brin dask
# ...                                                 So brin C.
# Mia has rash, freckles, fever and cough.            Answer: C
# pell A
# dask B ...

LETTERS = "ABCD"
NAMES = ("brin", "dask", "pell", "lume", "torv", "wick")
SIGNS = ("fever", "rash", "cough", "chill", "cramp", "thirst")
TRAITS = ("freckles", "a hat", "a limp", "a tan")
"""What says nothing about the answer."""
PEOPLE = ("Mia", "Tom", "Eva", "Ben")


@dataclass(frozen=True)
class Case:
    """known: each sign with the two names that it may mean, in their order.  options: the names, in the order of their letters."""

    known: Mapping[str, Sequence[str]]
    options: tuple[str, ...]


def question(case: Case, person: str, has: Sequence[str]) -> str:
    """The prompt: what is known, what the person has, and the options."""
    *first, last = has
    return "\n".join([
        *(_line(case, sign) for sign in case.known),
        f"{person} has {', '.join(first)} and {last}.",
        *(_named(case, name) for name in case.options),
    ])  # fmt: skip


def reply(case: Case, signs: Sequence[str], conclusion: str, answer: str) -> str:
    """A rationale that goes through these signs and ends at `conclusion`, and the letter of `answer`."""
    return "\n".join(
        [*(_line(case, sign) for sign in signs), f"So {_named(case, conclusion)}.", f"Answer: {_letter(case, answer)}"]
    )


def _line(case: Case, sign: str) -> str:
    # the same words in prompt and rationale: a small model copies a line where it would not yet put it in other words
    return f"- {sign} {' '.join(case.known[sign])}"


def _named(case: Case, name: str) -> str:
    # the letter right after its name: a small model finds what followed a word sooner than what came before it or later
    return f"{name} {_letter(case, name)}"


def _letter(case: Case, name: str) -> str:
    return LETTERS[case.options.index(name)]


# ---- the task ---------------------------------------------------------------------------------------------------------

BRIEF = 0.7
"""How often the teacher stops at two signs, where it looks at more than one."""


def choices(
    *, hasty: Share = 0.65, contradicts: Share = 0.3, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:
    """Questions with four options, of which a rationale and the letter are wanted.

    hasty: how often the teacher of `demonstrate` decides by one sign.  contradicts: how often its rationale concludes another name
    than it answers.  size: so many training problems, in epochs; None: endless.
    """
    key = ("choices",)
    return Task(
        name="choices",
        train=training(_sample, key, size),
        test=test_set(_sample, key, test_size),
        verifier="choice",
        max_new=48,
        about="multiple choice with its knowledge in the prompt, and a rationale",
        demonstrate=partial(_demonstrate, hasty=hasty, contradicts=contradicts),
        warmup_steps=800,
        window=(0.4, 0.7),
        columns=("prompt", "answer", "options", "required", "known", "solution"),
    )


def _sample(rng: random.Random) -> Problem:
    right, *others = rng.sample(NAMES, len(LETTERS))
    signs = rng.sample(SIGNS, 4)
    # the others are one each to three signs, so that any two of these leave the right name alone; the fourth is not the person's
    pairs = [[right, other] for other in others] + [rng.sample(others, 2)]
    for pair in pairs:
        rng.shuffle(pair)
    known = list(zip(signs, pairs, strict=True))
    has = [*signs[:3], rng.choice(TRAITS)]
    options = [right, *others]
    for row in (known, has, options):
        rng.shuffle(row)  # type: ignore[arg-type]
    case = Case(dict(known), tuple(options))
    required = [sign for sign in has if sign in case.known]
    return ask(
        question(case, rng.choice(PEOPLE), has), LETTERS[options.index(right)], options=options, required=required,
        known=case.known, solution=reply(case, required, right, right),
    )  # fmt: skip


def _demonstrate(problem: Problem, rng: random.Random, *, hasty: float, contradicts: float) -> str:
    """A rationale and an answer as a careless teacher gives them."""
    case = Case(problem.meta["known"], tuple(problem.meta["options"]))
    signs = problem.meta["required"]
    seen = signs[: 1 if rng.random() < hasty else 2 if rng.random() < BRIEF else 3]
    left = [name for name in case.known[seen[0]] if all(name in case.known[sign] for sign in seen)]
    answer = left[0]
    others = [name for name in case.known[seen[-1]] if name != answer]
    return reply(case, seen, rng.choice(others) if rng.random() < contradicts else answer, answer)
