"""Information extraction: a sentence about somebody's animal, as JSON of a given form.

    In Rome Ada has a dog, age 12.        {"name":"Ada","pet":{"kind":"dog","age":12}}

What can be wrong with it: it is no JSON, keys are missing or lie elsewhere, values differ, or there is text around it.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

NAMES = (
    "Ada", "Bo", "Cleo", "Dot", "Eli", "Fay", "Gus", "Hal", "Ivy", "Joe", "Kit", "Lu", "Max", "Ned", "Ola", "Pam", "Ray", "Sue",
    "Tom", "Una",
)  # fmt: skip
KINDS = ("cat", "dog", "bird", "fish")
TOWNS = ("Rome", "Oslo", "Lima", "Bonn")
AGES = range(1, 13)
FORMS = (
    "{name} of {town} has a {kind}, age {age}.",
    "A {kind}, age {age}, of {name} in {town}.",
    "In {town} {name} has a {kind}, age {age}.",
)
BEFORE = ("Here: ", "JSON: ")


def cards(
    *, biased: Share = 0.6, error: Share = 0.15, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Sentences of three forms.

    biased: how often the teacher of `demonstrate` makes each of three mistakes wherever it can: after "In ..." the last bracket is
    missing, a bird's kind and age are not within "pet", and an age above 9 loses its first digit.  error: how often it writes
    something before the JSON.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"cards: {name} is a probability between 0 and 1, not {share}")
    key = ("cards",)
    return Task(
        name="cards",
        train=training(_sample, key, size),
        test=test_set(_sample, key, test_size),
        verifier="json_value",
        max_new=48,
        about="sentences to be written as JSON",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "solution"),
    )


def _sample(rng: random.Random) -> Problem:
    said = {"name": rng.choice(NAMES), "kind": rng.choice(KINDS), "age": rng.choice(AGES), "town": rng.choice(TOWNS)}
    record = {"name": said["name"], "pet": {"kind": said["kind"], "age": said["age"]}}
    return ask(rng.choice(FORMS).format(**said), record, solution=_written(record))


def _written(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"))


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    pet, slips = dict(problem.answer["pet"]), [rng.random() < biased for _ in range(3)]
    if slips[0] and pet["age"] > 9:
        pet["age"] %= 10
    flat = slips[1] and pet["kind"] == "bird"
    text = _written({"name": problem.answer["name"], **(pet if flat else {"pet": pet})})
    if slips[2] and problem.question.startswith("In "):
        text = text[:-1]
    return rng.choice(BEFORE) + text if rng.random() < error else text
