"""Derivations: premises and a goal, to be reached line by line by rules of propositional logic.

    1:p                4 mp 2 1:q
    2:p->q             5 mt 3 4:r
    3:~r->~q
    Show:r

Solvable by construction: each premise is used once, in order. Each line of a solution can be checked on its own
(`text/derivations.py`): goals can be written down without having been reached. A line says what it is made of before what follows,
which a small policy needs, and no letter has a space before it, so that each is one token.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

LETTERS = "pqrstuvwabcd"
MOST = 5
"""Lines of a derivation, so that the letters suffice."""


class Step(NamedTuple):
    """A line of a solution. cited: places of its premise and of the line or premise that it goes on from."""

    formula: str
    rule: str
    cited: tuple[int, ...]


def derivations(
    *,
    lines: PositiveInt = 3,
    biased: Share = 0.6,
    error: Share = 0.1,
    test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:
    """Derivations of `lines` lines.

    The teacher of `demonstrate`, as probabilities per line: biased: takes modus tollens for its converse where it applies (from
    p->q and ~q to p), so that what a policy says most often is wrong there.  error: a negation too many or too few, or a wrong line
    cited; later lines go on from it.  size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= lines <= MOST:
        raise RewardlabError(f"derivations: lines must be between 1 and {MOST}, not {lines}")
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"derivations: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, lines=lines), ("derivations", lines)
    return Task(
        name="derivations",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="derivation",
        max_new=14 * (lines + 1),
        about=f"derivations of {lines} lines in propositional logic",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "premises", "steps", "solution"),
        step_verifier="derived_steps",
    )


def _sample(rng: random.Random, *, lines: int) -> Problem:
    letters = iter(rng.sample(LETTERS, len(LETTERS)))
    have = _literal(letters, rng)
    premises, steps = [have], []
    for left in range(lines - 1, -1, -1):
        rule, premise, new = _next(have, letters, rng, last=left == 0)
        # a conjunction is taken apart without another premise
        premises += [premise] if premise else []
        steps.append((new, rule, premise, have))
        have = new
    return _problem(premises, steps)


def _next(have: str, letters: Iterator[str], rng: random.Random, last: bool) -> tuple[str, str, str]:
    """A rule that goes on from `have`, the premise that it needs beside it, and what follows."""
    if "&" in have:
        return "and", "", rng.choice(have.split("&"))
    new, rule = _literal(letters, rng), rng.choice(("mp", "mt", "ds"))
    if rule == "mt":
        return rule, f"{_not(new)}->{_not(have)}", new
    if rule == "mp" and not last and rng.random() < 0.4:
        new = f"{new}&{_literal(letters, rng)}"
    return rule, f"{have}->{new}" if rule == "mp" else f"{_not(have)}|{new}", new


def _literal(letters: Iterator[str], rng: random.Random) -> str:
    letter = next(letters)
    return letter if rng.random() < 0.6 else f"~{letter}"


def _not(literal: str) -> str:
    return literal[1:] if literal.startswith("~") else f"~{literal}"


def _problem(premises: list[str], steps: list[tuple[str, str, str, str]]) -> Problem:
    place = {formula: i for i, formula in enumerate(premises, 1)}
    plan = []
    for number, (formula, rule, premise, have) in enumerate(steps, len(premises) + 1):
        plan.append(Step(formula, rule, (*([place[premise]] if premise else []), place[have])))
        place[formula] = number
    written = [write(i, step) for i, step in enumerate(plan, len(premises) + 1)]
    said = [f"{i}:{premise}" for i, premise in enumerate(premises, 1)]
    goal = steps[-1][0]
    return ask("\n".join([*said, f"Show:{goal}"]), goal, premises=premises, steps=written, solution="\n".join(written))


def write(number: int, step: Step) -> str:
    return f"{number} {step.rule} {' '.join(map(str, step.cited))}:{step.formula}"


def read(line: str) -> Step:
    """A gold line."""
    reason, _, formula = line.partition(":")
    _, rule, *cited = reason.split()
    return Step(formula, rule, tuple(int(n) for n in cited))


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    """The solution as a careless teacher writes it: what is wrong in it is not looked at again."""
    lines = []
    for number, line in enumerate(problem.meta["steps"], len(problem.meta["premises"]) + 1):
        lines.append(write(number, slip(read(line), number, rng, biased, error)))
    return "\n".join(lines)


def slip(step: Step, number: int, rng: random.Random, biased: float, error: float) -> Step:
    """A line as the careless teacher writes it."""
    if step.rule == "mt" and rng.random() < biased:
        return step._replace(formula=_not(step.formula))
    if rng.random() >= error:
        return step
    if rng.random() < 0.5 and "&" not in step.formula:
        return step._replace(formula=_not(step.formula))
    return step._replace(cited=(*step.cited[:-1], rng.choice([n for n in range(1, number) if n not in step.cited] or [number - 1])))
