"""Short sums, open or with options, and two replies to each: a worked-out one and a guess.

    What is 7+5*2?                       chosen: 5*2=10            rejected: Answer: C
    A. 24 B. 17 C. 16 D. 27                      7+10=17
                                                 Answer: B

The careful one slips at times. Who guesses takes an option at random or, where there are none, a number of about the right size.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.data.templates import CHOICE, OPEN, templated
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

LETTERS = "ABCD"
OFF = (-10, -2, -1, 1, 2, 10)


def quiz(*, slips: Share = 0.2, near: Share = 0.15, test_size: PositiveInt = 1000, size: PositiveInt | None = None) -> Task:
    """Half of the questions have options; the column form says which.

    slips: how often careful replies are wrong.  near: how often an open guess is right by luck.  size: so many training problems,
    in epochs; None: endless.
    """
    pair, key = partial(_pair, slips=slips, near=near), ("quiz",)
    return Task(
        name="quiz",
        train=Paired(training(_sample, key, size), pair),
        test=all_paired(test_set(_sample, key, test_size), pair),
        verifier="named_verifier",
        max_new=48,
        about="short sums, with options to choose from or openly",
        demonstrate=partial(_demonstrate, slips=slips, near=near),
        columns=("prompt", "answer", "form", "verifier", "options", "terms", "solution", "chosen", "rejected", "qualities"),
    )


def _sample(rng: random.Random) -> Problem:
    a, b, c = rng.randint(2, 499), rng.randint(2, 19), rng.randint(2, 19)
    right = a + b * c
    options = [str(right + off) for off in rng.sample(OFF, len(LETTERS) - 1)] + [str(right)]
    rng.shuffle(options)
    form = rng.choice((CHOICE, OPEN))
    made = templated(f"What is {a}+{b}*{c}?", str(right), options, form)
    assert isinstance(made, list)
    _, prompt, answer = made[0]
    verifier = "choice" if form == CHOICE else "final_number"
    return ask(
        prompt, answer, form=form, verifier=verifier, options=options, terms=[a, b, c], solution=_worked([a, b, c], right, answer)
    )  # fmt: skip


def _worked(terms: list[int], result: int, answer: str) -> str:
    a, b, c = terms
    return f"{b}*{c}={b * c}\n{a}+{b * c}={result}\nAnswer: {answer}"


def _careful(problem: Problem, rng: random.Random, slips: float) -> Reply:
    a, b, c = problem.meta["terms"]
    right = a + b * c
    if rng.random() >= slips:
        return Reply(problem.meta["solution"], 1.0)
    options = problem.meta["options"]
    said = rng.choice([option for option in options if option != str(right)])
    return Reply(_worked([a, b, c], int(said), _stated(problem, said)), 1.0)


def _guess(problem: Problem, rng: random.Random, near: float) -> Reply:
    a, b, c = problem.meta["terms"]
    right = a + b * c
    if problem.meta["form"] == CHOICE:
        said = rng.choice(problem.meta["options"])
    else:
        said = str(right if rng.random() < near else right + rng.choice([off for off in range(-15, 16) if off]))
    return Reply(f"Answer: {_stated(problem, said)}", 0.0)


def _stated(problem: Problem, option: str) -> str:
    return LETTERS[problem.meta["options"].index(option)] if problem.meta["form"] == CHOICE else option


def _pair(problem: Problem, rng: random.Random, *, slips: float, near: float) -> Problem:
    return with_pair(problem, _careful(problem, rng, slips), _guess(problem, rng, near))


def _demonstrate(problem: Problem, rng: random.Random, *, slips: float, near: float) -> str:
    """A guess as often as careful work."""
    return (_careful(problem, rng, slips) if rng.random() < 0.5 else _guess(problem, rng, near)).text
