"""Cases to test a verifier on, in forms and with errors that the augmentation (`augment.py`) does not make.

A verifier that was trained on forms of one list, and is tested on the same list, shows that it has learnt the list. Here right
answers, wrong ones and replies without an answer are written by rules that have nothing in common with those.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from .language import Case

Write = Callable[[Sequence[int]], str]
"""From the numbers of an answer to its text."""

RIGHT_ONE: Mapping[str, Write] = {
    "hundredths": lambda x: f"{x[0]}.00", "plus": lambda x: f"+{x[0]}", "over one": lambda x: f"{x[0]}/1",
    "tenths": lambda x: f"{10 * x[0]}/10", "in brackets": lambda x: f"({x[0]})", "leading zero": lambda x: f"0{x[0]}",
    "box": lambda x: f"\\boxed{{{x[0]}}}",
}  # fmt: skip
RIGHT_SEVERAL: Mapping[str, Write] = {
    "semicolons": lambda x: "; ".join(map(str, x)), "tuple": lambda x: f"({', '.join(map(str, x))})",
    "ampersand": lambda x: " & ".join(map(str, x)), "hundredths": lambda x: ", ".join(f"{n}.00" for n in x),
    "box": lambda x: f"\\boxed{{{', '.join(map(str, x))}}}",
}  # fmt: skip
WRONG: Mapping[str, Callable[[Sequence[int]], list[int]]] = {
    "two off": lambda x: [*x[:-1], x[-1] + 2], "ten times": lambda x: [*x[:-1], 10 * x[-1]],
    "doubled": lambda x: [2 * x[0], *x[1:]], "hundred more": lambda x: [x[0] + 100, *x[1:]],
}  # fmt: skip
INVALID: Sequence[Callable[[str], str]] = (
    lambda asked: f"We are to find {asked}, so we",
    lambda asked: f"{asked}={asked}={asked}={asked}={asked}=",
    lambda asked: f"What is {asked}? What is {asked}? What is {asked}?",
    lambda asked: "That is not for me to say.",
)  # fmt: skip


def unseen(question: str, right: Sequence[int], judgment: str, rng: random.Random) -> Case:
    """A case of this judgement: the right numbers, or wrong ones, in an unseen form; or a reply without an answer."""
    asked, gold = question.removeprefix("What is ").rstrip("?"), ", ".join(map(str, right))
    if judgment == "C":
        return Case(question, gold, rng.choice(INVALID)(asked), judgment)
    said = list(right) if judgment == "A" else WRONG[rng.choice(sorted(WRONG))](right)
    forms = RIGHT_ONE if len(said) == 1 else RIGHT_SEVERAL
    stated = forms[rng.choice(sorted(forms))](said)
    worked = "\n".join(f"{sum_}={n}" for sum_, n in zip(asked.split(" and "), said, strict=True))
    return Case(question, gold, f"{worked}\n{stated}" if "boxed" in stated else f"{worked}\nAnswer: {stated}", judgment)
