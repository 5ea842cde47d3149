"""Multiple choice in which one reply says what it goes by, and another has a hunch, mostly that it is the first option.

    Mia has fever.          fever is brin.          Answer: A
    pell A                  Answer: B
    brin B
    dask C
    lume D

Each sign means one name, which is to be known by heart; the letter of a name is read in the prompt. The careless teacher takes
another name at times. A hunch is right in one case of four, and a reward for the letter does not tell it from knowledge.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

LETTERS = "ABCD"
MEANS = {"fever": "brin", "rash": "dask", "cough": "pell", "chill": "lume", "cramp": "torv", "thirst": "wick"}
PEOPLE = ("Mia", "Tom", "Eva", "Ben")


def hunches(
    *, hunch: Share = 0.4, first: Share = 0.6, slips: Share = 0.15, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Questions with four options, of which the letter is wanted.

    hunch: the share of the teacher's replies that are a letter alone; first: how often that is A, and else any.  slips: how often
    the others take another name.  size: so many training problems, in epochs; None: endless.
    """
    key = ("hunches",)
    return Task(
        name="hunches",
        train=training(_sample, key, size),
        test=test_set(_sample, key, test_size),
        verifier="choice",
        max_new=16,
        about="multiple choice by what a sign means, or by a hunch",
        demonstrate=partial(_demonstrate, hunch=hunch, first=first, slips=slips),
        warmup_steps=300,
        window=(0.3, 1.0),
        columns=("prompt", "answer", "options", "sign", "solution"),
    )


def _sample(rng: random.Random) -> Problem:
    sign = rng.choice(list(MEANS))
    others = rng.sample([name for name in MEANS.values() if name != MEANS[sign]], len(LETTERS) - 1)
    options = rng.sample([MEANS[sign], *others], len(LETTERS))
    # the letter right after its name, as in `choices`: a small model finds what followed a word sooner than what came before it
    listed = "\n".join(f"{name} {letter}" for name, letter in zip(options, LETTERS, strict=True))
    right = LETTERS[options.index(MEANS[sign])]
    return ask(
        f"{rng.choice(PEOPLE)} has {sign}.\n{listed}", right, options=options, sign=sign, solution=_known(sign, MEANS[sign], right)
    )


def _known(sign: str, name: str, letter: str) -> str:
    return f"{sign} is {name}.\nAnswer: {letter}"


def _demonstrate(problem: Problem, rng: random.Random, *, hunch: float, first: float, slips: float) -> str:
    options, sign = problem.meta["options"], problem.meta["sign"]
    if rng.random() < hunch:
        return f"Answer: {LETTERS[0] if rng.random() < first else rng.choice(LETTERS)}"
    name = MEANS[sign] if rng.random() >= slips else rng.choice([x for x in options if x != MEANS[sign]])
    return _known(sign, name, LETTERS[options.index(name)])
