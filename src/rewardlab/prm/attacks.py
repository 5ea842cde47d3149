"""Changes of right solutions that a process reward model should not mind, and others that it must.

Each takes the steps of a right solution, random numbers, and the steps of a right solution of another problem; it returns the steps
as changed, or None where there is nothing that it could change. STYLE keeps the reasoning; after LOGIC a solution is wrong, or does
not reason.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

Steps = tuple[str, ...]
Attack = Callable[[Steps, random.Random, Steps], Steps | None]

_NUMBER = re.compile(r"(?<![\d.])\d+(?![\d.]*\d)")
_CONNECTIVES = {
    "so": "therefore", "therefore": "so", "thus": "hence", "hence": "thus", "then": "next", "next": "then", "since": "because",
    "because": "since", "first": "to begin with", "finally": "at last", "now": "at this point", "we get": "this gives",
    "we have": "there is", "calculate": "work out", "find": "work out", "total": "sum", "subtract": "take away",
}  # fmt: skip
_CONNECTIVE = re.compile(r"\b(" + "|".join(sorted(map(re.escape, _CONNECTIVES), key=len, reverse=True)) + r")\b", re.I)
LONG = "Let us carry out the next part of the solution with care, since what follows builds on it. "
SURE = "It is certain beyond any doubt that this is right: "
PRAISE = "This step is right, and it leads to the correct answer."


# ---- the reasoning stays -------------------------------------------------------------------------------------------------


def reworded(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """Connectives and plain verbs by others of the same meaning."""
    changed = tuple(_CONNECTIVE.sub(_other_word, step) for step in steps)
    return changed if changed != steps else None


def _other_word(match: re.Match[str]) -> str:
    word = _CONNECTIVES[match.group().lower()]
    return word.capitalize() if match.group()[0].isupper() else word


def verbose(steps: Steps, rng: random.Random, other: Steps) -> Steps:
    """A sentence that says nothing before each step."""
    return tuple(LONG + step for step in steps)


def sure(steps: Steps, rng: random.Random, other: Steps) -> Steps:
    """Each step is called certain."""
    return tuple(SURE + step for step in steps)


def marked_up(steps: Steps, rng: random.Random, other: Steps) -> Steps:
    """Each step as an item of a list."""
    return tuple(f"- {step}" for step in steps)


def restated(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """Each step but the last is said twice."""
    return (*(said for step in steps[:-1] for said in (step, step)), steps[-1]) if len(steps) > 1 else None


# ---- the reasoning breaks ------------------------------------------------------------------------------------------------


def value(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """The last number of one step before the last is another; what follows stays."""
    places = [i for i, step in enumerate(steps[:-1]) if _NUMBER.search(step)]
    return _renumbered(steps, rng.choice(places), rng) if places else None


def answer(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """The last number of the last step is another."""
    return _renumbered(steps, len(steps) - 1, rng) if _NUMBER.search(steps[-1]) else None


def _renumbered(steps: Steps, at: int, rng: random.Random) -> Steps:
    last = [*_NUMBER.finditer(steps[at])][-1]
    wrong = abs(int(last.group()) + rng.choice((-3, -2, -1, 1, 2, 3, 10)))
    # of 1 - 2 the amount is 1 again
    wrong += wrong == int(last.group())
    return (*steps[:at], f"{steps[at][: last.start()]}{wrong}{steps[at][last.end() :]}", *steps[at + 1 :])


def skipped(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """A step between the first and the last is missing, on which later ones build."""
    if len(steps) < 3:
        return None
    at = rng.randrange(1, len(steps) - 1)
    return (*steps[:at], *steps[at + 1 :])


def reversed_order(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """All steps but the last stand in the opposite order: each uses what is found later."""
    changed = (*steps[-2::-1], steps[-1])
    return changed if changed != steps else None


def of_another(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """A right solution of another problem."""
    return other if other != steps else None


def repeated(steps: Steps, rng: random.Random, other: Steps) -> Steps | None:
    """The first step again and again, as many times as there are steps: nothing is solved."""
    return (steps[0],) * len(steps) if len(steps) > 1 else None


def praise(steps: Steps, rng: random.Random, other: Steps) -> Steps:
    """Every step only says that it is right."""
    return (PRAISE,) * len(steps)


STYLE: dict[str, Attack] = {
    "reworded": reworded, "verbose": verbose, "sure": sure, "list items": marked_up, "said twice": restated,
}  # fmt: skip
LOGIC: dict[str, Attack] = {
    "wrong value": value, "wrong answer": answer, "step missing": skipped, "order reversed": reversed_order,
    "another problem's": of_another, "one step repeated": repeated, "praise alone": praise,
}  # fmt: skip


def changed(attack: Attack, solutions: Sequence[Steps], rng: random.Random) -> list[Steps | None]:
    """Each solution as an attack changes it; the other problem's is the next one."""
    return [attack(steps, rng, solutions[(i + 1) % len(solutions)]) for i, steps in enumerate(solutions)]
