"""Formulas of signal temporal logic changed as careless people write them: one slip at a time, of a named kind.

atoms      another number, the relation turned round, another signal
times      G for F and the reverse, an interval with another end
logic      and for or and the reverse, an implication turned round, one side of it alone
longer     the same with two negations, or with an operand said twice
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from .stl import Atom, Formula, Node, parts

OTHER = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "G": "F", "F": "G", "and": "or", "or": "and"}
KINDS = ("atoms", "times", "logic", "longer")


def slipped(formula: Formula, kind: str, rng: random.Random) -> Formula | None:
    """The formula with one random slip of this kind; None where there is none to make."""
    made = list(dict.fromkeys(changed for changed in _everywhere(formula, _OF[kind], rng) if changed != formula))
    return rng.choice(made) if made else None


def _everywhere(formula: Formula, slips: Callable[..., Iterator[Formula]], rng: random.Random) -> Iterator[Formula]:
    """The formula with each slip, here or in one operand."""
    names = sorted({of.signal for of in parts(formula) if isinstance(of, Atom)})
    yield from _at(formula, slips, rng, names)


def _at(formula: Formula, slips: Callable[..., Iterator[Formula]], rng: random.Random, names: list[str]) -> Iterator[Formula]:
    yield from slips(formula, rng, names)
    if isinstance(formula, Node):
        for i, of in enumerate(formula.operands):
            for changed in _at(of, slips, rng, names):
                yield replace(formula, operands=(*formula.operands[:i], changed, *formula.operands[i + 1 :]))


def _of_atoms(of: Formula, rng: random.Random, names: list[str]) -> Iterator[Formula]:
    if isinstance(of, Atom):
        yield replace(of, bound=_near(of.bound, rng))
        yield replace(of, relation=OTHER[of.relation])
        if others := [name for name in names if name != of.signal]:
            yield replace(of, signal=rng.choice(others))


def _of_times(of: Formula, rng: random.Random, names: list[str]) -> Iterator[Formula]:
    if isinstance(of, Node) and of.interval:
        if of.operator in OTHER:
            yield replace(of, operator=OTHER[of.operator])
        first, last = of.interval
        yield replace(of, interval=(first, last + rng.randint(1, 5)))
        if last - first > 1:
            yield replace(of, interval=(first + 1, last))


def _of_logic(of: Formula, rng: random.Random, names: list[str]) -> Iterator[Formula]:
    if isinstance(of, Node) and len(of.operands) == 2:
        if of.operator in OTHER:
            yield replace(of, operator=OTHER[of.operator])
        else:
            yield replace(of, operands=of.operands[::-1])
        yield of.operands[-1]


def _longer(of: Formula, rng: random.Random, names: list[str]) -> Iterator[Formula]:
    yield Node("not", (Node("not", (of,)),))
    yield Node(rng.choice(("and", "or")), (of, of))


def _near(bound: float, rng: random.Random) -> float:
    step = rng.choice([-2, -1, 1, 2]) * (10 if abs(bound) >= 10 and rng.random() < 0.3 else 1)
    return bound + step


_OF: dict[str, Callable[..., Iterator[Formula]]] = {
    "atoms": _of_atoms, "times": _of_times, "logic": _of_logic, "longer": _longer,
}  # fmt: skip
