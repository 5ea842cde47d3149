"""Derivations in propositional logic: numbered lines, each with the rule and the lines that its formula follows from.

    1:p->q             premises, numbered from 1
    2:p
    3 mp 1 2:q         q follows from lines 1 and 2

A line is right if the lines that it cites, as many as its rule takes, entail its formula. What it cites may itself have been wrong:
each step is judged by what it builds on alone, so that one error is one wrong line. Which of the rules it names is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .logic import Formula, entails, parse

RULES = {"mp": 2, "mt": 2, "ds": 2, "hs": 2, "join": 2, "and": 1, "or": 1}
"""How many lines a rule takes: modus ponens and tollens, disjunctive and hypothetical syllogism; a conjunction made, and taken
apart; a disjunction made."""

_LINE = re.compile(r"(\d{1,3}) ([a-z]+)((?: \d{1,3})+) ?:(.+)")


class Line(NamedTuple):
    """A line that was checked.  formula: what it says; None where that cannot be read.  why: in words, empty if it is right."""

    formula: Formula | None
    why: str = ""

    @property
    def right(self) -> bool:
        return not self.why


def check(lines: Sequence[str], premises: Sequence[str]) -> list[Line]:
    """Each line of a derivation, checked. Raises ValueError for premises that cannot be read."""
    known: dict[int, Formula | None] = {i: parse(premise) for i, premise in enumerate(premises, 1)}
    checked = []
    for number, line in enumerate(lines, len(premises) + 1):
        found = _checked(line, number, known)
        known[number] = found.formula
        checked.append(found)
    return checked


def _checked(line: str, number: int, known: dict[int, Formula | None]) -> Line:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return Line(None, "not of the form `3 mp 1 2:q`")
    try:
        formula = parse(match[4])
    except ValueError as problem:
        return Line(None, str(problem))
    if int(match[1]) != number:
        return Line(formula, f"numbered {match[1]}, and it is line {number}")
    if match[2] not in RULES:
        return Line(formula, f"{match[2]} is not a rule; the rules are {', '.join(RULES)}")
    cited = [int(n) for n in match[3].split()]
    if len(cited) != RULES[match[2]]:
        return Line(formula, f"{match[2]} takes {RULES[match[2]]} lines, and not {len(cited)}")
    built_on = [known.get(n) for n in cited]
    if unread := [n for n, f in zip(cited, built_on, strict=True) if f is None]:
        return Line(formula, f"there is no line {unread[0]} before it that can be read")
    try:
        follows = entails([f for f in built_on if f is not None], formula)
    except ValueError as problem:
        return Line(formula, str(problem))
    return Line(formula, "" if follows else f"does not follow from {' and '.join(map(str, cited))}")
