"""Requirements on signals in words, to be written in signal temporal logic.

    v over 30 always in 2 to 9                    G[2,9] v > 30
    if v over 9 then p under 4 in 6, 0 to 20      G[0,20] (v > 9 -> F[0,6] p < 4)

Formulas are judged by the verifier `stl_equivalent`: whether they hold of the same signals as the gold one. The careless writer of
`demonstrate` makes slips of several kinds (`text/stl_edits.py`).
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.stl import Atom, Formula, Node, parse
from rewardlab.text.stl_edits import KINDS, slipped

SIGNALS = "vptqwh"
SLIPS = {"atoms": 0.35, "times": 0.25, "logic": 0.15, "longer": 0.25}


def requirements(
    *, care: Share = 0.4, test_size: PositiveInt = 500, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """care: how often the careless writer makes no slip; else there is one, or with a chance of 30% each another one.  size: so
    many training problems, in epochs; None: endless."""
    key = ("requirements",)
    return Task(
        name="requirements",
        train=training(_sample, key, size),
        test=test_set(_sample, key, test_size),
        verifier="stl_equivalent",
        max_new=64,
        about="requirements on signals in words, to be written as formulas of signal temporal logic",
        demonstrate=partial(_demonstrate, care=care),
        warmup_steps=450,
        columns=("prompt", "answer"),
    )


def _sample(rng: random.Random) -> Problem:
    one, two = (_atom(name, rng) for name in rng.sample(SIGNALS, 2))
    first = rng.randint(0, 9)
    last = first + rng.randint(2, 20)
    within = rng.randint(2, 9)
    words, formula = rng.choice((_single, _both, _response, _until))(one, two, (float(first), float(last)), within)
    return ask(words, str(formula))


def _atom(name: str, rng: random.Random) -> Atom:
    return Atom(name, rng.choice("><"), float(rng.randint(2, 60)))


def _said(atom: Atom) -> str:
    return f"{atom.signal} {'over' if atom.relation == '>' else 'under'} {atom.bound:g}"


def _time(interval: tuple[float, float]) -> str:
    return f"{interval[0]:g} to {interval[1]:g}"


def _single(one: Atom, two: Atom, interval: tuple[float, float], within: int) -> tuple[str, Formula]:
    # as often the one as the other
    always = within % 2 == 0
    return f"{_said(one)} {'always' if always else 'once'}, {_time(interval)}", Node("G" if always else "F", (one,), interval)


def _both(one: Atom, two: Atom, interval: tuple[float, float], within: int) -> tuple[str, Formula]:
    operator = "and" if within % 2 == 0 else "or"
    return f"{_said(one)} {operator} {_said(two)} always, {_time(interval)}", Node("G", (Node(operator, (one, two)),), interval)


def _response(one: Atom, two: Atom, interval: tuple[float, float], within: int) -> tuple[str, Formula]:
    answered = Node("->", (one, Node("F", (two,), (0.0, float(within)))))
    return f"if {_said(one)} then {_said(two)} in {within}, {_time(interval)}", Node("G", (answered,), interval)


def _until(one: Atom, two: Atom, interval: tuple[float, float], within: int) -> tuple[str, Formula]:
    return f"{_said(one)} until {_said(two)} in {within}", Node("U", (one, two), (0.0, float(within)))


def _demonstrate(problem: Problem, rng: random.Random, *, care: float) -> str:
    formula = parse(problem.answer)
    if rng.random() < care:
        return str(formula)
    for again in (1.0, 0.3):
        if rng.random() < again:
            kind = rng.choices(KINDS, [SLIPS[kind] for kind in KINDS])[0]
            formula = slipped(formula, kind, rng) or formula
    return str(formula)
