"""Statics: a beam on two supports under point loads, and its reactions in multiples of P.

    Beam 0 to 4, E 7. Supports 0, 4. Loads 8P at 1, 4P at 3.
    8*(1-0)/4=2; 4*(3-0)/4=3; 2+3=5; 12-5=7; \\boxed{7P, 5P}

The sum of moments about the first support gives what the second one bears: load times its distance from there, by the distance
between the two. Problems are of three kinds: `one` load on a beam that rests on its ends; more `loads` on such a beam; and one load
on a beam whose `supports` were moved. The equations are the same for all; Young's modulus E plays no part in them.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial
from typing import Literal

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

KINDS = ("one", "loads", "supports")
SPANS, WEIGHTS, MOVED = (2, 3, 4, 6), range(1, 7), 3
"""Distances of the supports; loads, in multiples of P times that distance, so that reactions are whole; how far supports move."""

Load = tuple[int, int]
"""How much, and where."""


def reactions(supports: tuple[int, int], loads: list[Load]) -> tuple[Fraction, Fraction]:
    """What both supports bear: the moments about the first of them, and the forces, add up to 0."""
    (left, right), total = supports, Fraction(sum(weight for weight, _ in loads))
    second = sum((Fraction(weight * (at - left), right - left) for weight, at in loads), start=Fraction(0))
    return total - second, second


def beams(
    *, train: Literal["all", "one"] = "all", biased: Share = 0.6, error: Share = 0.05, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Beams of three kinds, named in the column `kind`; held-out problems are of all kinds.

    train: kinds of the training problems; "one": of one load on a beam that rests on its ends alone, from the policy that has seen
    all. biased: how often the teacher of `demonstrate` makes each of two mistakes where it can, so that what a policy does most
    often is wrong: beyond the middle it counts a place too few, and where the first support was moved it measures from the end.
    error: how often a number of it is wrong.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"beams: {name} is a probability between 0 and 1, not {share}")
    if train not in ("all", "one"):
        raise RewardlabError(f"beams: train is all or one, not {train!r}")
    key = ("beams",)
    return Task(
        name="beams",
        train=training(partial(_sample, kinds=KINDS if train == "all" else KINDS[:1]), key, size),
        test=test_set(partial(_sample, kinds=KINDS), key, test_size),
        verifier="coefficients",
        max_new=100,
        about="beams on two supports, and what these bear",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "kind", "beam", "solution"),
        warmed_as=None if train == "all" else f"beams:biased={biased},error={error}",
    )


def _sample(rng: random.Random, *, kinds: tuple[str, ...]) -> Problem:
    kind, span = rng.choice(kinds), rng.choice(SPANS)
    left, beyond = (rng.randint(1, MOVED), rng.randint(0, 1)) if kind == "supports" else (0, 0)
    # no load is beyond a support, where it would lift the other one
    places = sorted(rng.sample(range(left, left + span + 1), rng.randint(2, 3) if kind == "loads" else 1))
    loads = [(span * rng.choice(WEIGHTS), at) for at in places]
    answer = [f"{value}P" for value in reactions((left, left + span), loads)]
    said = ", ".join(f"{weight}P at {at}" for weight, at in loads)
    question = (
        f"Beam 0 to {left + span + beyond}, E {rng.randint(1, 9)}. Supports {left}, {left + span}. "
        f"Load{'s' if len(loads) > 1 else ''} {said}."
    )
    beam = {"supports": [left, left + span], "loads": [list(load) for load in loads]}
    return ask(question, answer, kind=kind, beam=beam, solution=_worked(left, span, loads))


def _worked(left: int, span: int, loads: list[Load], off: int = 0, miscounts: bool = False) -> str:
    """The solution, or one with mistakes.  off: an error of the last sum.  miscounts: beyond the middle, by one place."""
    shares, steps = [], []
    for weight, at in loads:
        # a distance from the other support would be no mistake here: the reactions change places, and may be stated in any order
        short = int(miscounts and at - left > span / 2)
        arm, written = at - left - short, f"{at - short}-{left}"
        shares.append(weight * arm // span)
        steps.append(f"{weight}*({written})/{span}={shares[-1]}")
    second, total = sum(shares), sum(weight for weight, _ in loads)
    if len(shares) > 1:
        steps.append(f"{'+'.join(map(str, shares))}={second}")
    first = total - second + off
    return "; ".join([*steps, f"{total}-{second}={first}", f"\\boxed{{{first}P, {second}P}}"])


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    beam = problem.meta["beam"]
    miscounts, from_end = (rng.random() < biased for _ in range(2))
    off = rng.choice((-1, 1)) if rng.random() < error else 0
    left, right = beam["supports"]
    return _worked(0 if from_end else left, right - left, [(weight, at) for weight, at in beam["loads"]], off, miscounts)
