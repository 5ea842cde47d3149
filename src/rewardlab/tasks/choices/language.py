"""What a question and a rationale look like.

- fever brin dask                           ->      - rash pell brin
- rash pell brin                                    - fever brin dask
...                                                 So brin C.
Mia has rash, freckles, fever and cough.            Answer: C
pell A
dask B ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
