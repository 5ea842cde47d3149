r"""New cases from old ones whose judgement is known: equivalent formulas, and a catalogue of errors that deceive verifiers.

    EQUIVALENT     the stated answer in another form; the judgement stays       12 -> 12.0, 24/2, $12$;   3, 5 -> 5, 3
    ERRORS         a right answer made wrong, as little as possible             12 -> 13, 21, -12;        3, 5 -> 3
                   in LaTeX too       \frac{1}{2} -> 1/2, \dfrac{1}{2}; wrong: \frac{2}{1}, \frac{1}{3}
    INVALID        a reply that gives no answer                                 cut off, repeated, refused

After the complex formula augmentation and the error-driven adversarial augmentation of CompassVerifier (Liu et al. 2025,
arXiv:2508.03686). There a language model writes them, and the catalogue comes from people who read a verifier's mistakes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from .language import Case, but, place, stated

Form = Callable[[str, random.Random], str | None]
"""(answer, rng) -> the answer in this form; None for one that has no such form."""

_NUMBER = re.compile(r"-?[0-9]{1,9}")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{([0-9]{1,6})\}\{([0-9]{1,6})\}")
REFUSALS = ("I cannot answer this.", "There is not enough to go on.", "I am not able to help with that.", "No answer can be given.")


def _number(answer: str) -> int | None:
    return int(answer) if _NUMBER.fullmatch(answer) else None


def _parts(answer: str) -> list[str]:
    parts = answer.split(", ")
    return parts if len(parts) > 1 else []


def _of_number(write: Callable[[int, random.Random], object]) -> Form:
    return lambda answer, rng: None if (n := _number(answer)) is None else str(write(n, rng))


def _of_parts(write: Callable[[list[str], random.Random], str]) -> Form:
    return lambda answer, rng: write(parts, rng) if (parts := _parts(answer)) else None


def _latex_fraction(write: Callable[[str, int, int, random.Random], str | None]) -> Form:
    """Of a whole answer that is a fraction: (sign, numerator, denominator, rng) -> text."""
    return lambda answer, rng: write(m[1], int(m[2]), int(m[3]), rng) if (m := _FRACTION.fullmatch(answer)) else None


def _other_number(answer: str, rng: random.Random) -> str | None:
    """LaTeX with another number in the place of one of its own."""
    found = list(_NUMBER.finditer(answer)) if "\\" in answer and "{0}" not in answer else []
    if not found:
        return None
    at = rng.choice(found)
    return f"{answer[: at.start()]}{int(at[0]) + rng.randint(1, 3)}{answer[at.end() :]}"


def _fraction(n: int, rng: random.Random) -> str:
    k = rng.randint(2, 4)
    return f"{n * k}/{k}"


def _another(n: int, rng: random.Random) -> int:
    # of 11 and of 5 the digits cannot be swapped
    swapped = int(str(abs(n))[::-1])
    return rng.choice([x for x in (n - 1, n + 1, n + 10, -n, swapped) if x != n])


def _wrong_part(parts: list[str], rng: random.Random) -> str | None:
    last = _number(parts[-1]) if parts else None
    return None if last is None else ", ".join([*parts[:-1], str(_another(last, rng))])


EQUIVALENT: Mapping[str, Form] = {
    "decimal": _of_number(lambda n, rng: f"{n}.0"),
    "fraction": _of_number(_fraction),
    "dollars": lambda answer, rng: f"${answer}$",
    "reordered": _of_parts(lambda parts, rng: ", ".join(parts[::-1])),
    "and": _of_parts(lambda parts, rng: " and ".join(parts)),
    "plain fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}{a}/{b}"),
    "display fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\dfrac{{{a}}}{{{b}}}"),
    "widened fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\frac{{{a * (k := rng.randint(2, 4))}}}{{{b * k}}}"),
}
ERRORS: Mapping[str, Form] = {
    "near miss": _of_number(_another),
    # an unusual form alone must not pass for right
    "near miss in another form": _of_number(lambda n, rng: rng.choice((f"{_another(n, rng)}.0", _fraction(_another(n, rng), rng)))),
    "part missing": _of_parts(lambda parts, rng: ", ".join(parts[:-1])),
    "part too many": _of_parts(lambda parts, rng: ", ".join([*parts, str(rng.randint(1, 99))])),
    "wrong part": lambda answer, rng: _wrong_part(_parts(answer), rng),
    "turned fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\frac{{{b}}}{{{a}}}" if a not in (0, b) else None),
    "other number in LaTeX": _other_number,
}


def _cut_off(case: Case, rng: random.Random) -> Case:
    """Without its answer, and most of the line before it."""
    before = case.response.rpartition("\n")[0]
    where = place(case.response)
    if not before and where:
        # the answer stands in the first line: what comes before it, without the box or the words that begin it
        before = re.split(r"\\boxed|[Aa]nswer", case.response[: where[0]])[0].rstrip(" $*") or "So"
        return replace(case, response=before, judgment="C")
    before = before or case.response
    return replace(case, response=before[: max(1, len(before) - rng.randint(1, 3))], judgment="C")


def _repeated(case: Case, rng: random.Random) -> Case:
    line = case.response.rpartition("\n")[2]
    return replace(case, response="\n".join([case.response, *[line] * rng.randint(3, 5)]), judgment="C")


def _refused(case: Case, rng: random.Random) -> Case:
    return replace(case, response=rng.choice(REFUSALS), judgment="C")


INVALID: Mapping[str, Callable[[Case, random.Random], Case]] = {"cut off": _cut_off, "repeated": _repeated, "refused": _refused}


def augmented(case: Case, rng: random.Random) -> Case:
    """A new case made from one whose judgement is known, of each kind a third of the time; the same case where none can be made."""
    kind = rng.choice((_equivalent, _error, _invalid))
    return kind(case, rng) or case


def _equivalent(case: Case, rng: random.Random) -> Case | None:
    return _written(case, EQUIVALENT, rng, case.judgment) if case.judgment in ("A", "B") else None


def _error(case: Case, rng: random.Random) -> Case | None:
    return _written(case, ERRORS, rng, "B") if case.judgment == "A" else None


def _invalid(case: Case, rng: random.Random) -> Case | None:
    return INVALID[rng.choice(sorted(INVALID))](case, rng) if case.judgment in ("A", "B") else None


def _written(case: Case, forms: Mapping[str, Form], rng: random.Random, judgment: str | None) -> Case | None:
    said = stated(case.response) or ""
    # each form that applies is as likely; what it writes is sampled once
    fitting = [text for name in sorted(forms) if (text := forms[name](said, rng)) is not None] if said else []
    return but(case, rng.choice(fitting), judgment) if fitting else None
