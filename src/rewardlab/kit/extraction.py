"""Reading answers out of text. Nothing here raises, whatever the text, and every pattern runs in linear time."""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 200
"""Characters of the longest text that is still read as one number."""

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,10}(?![0-9])|[0-9]{1,60})"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?)\s?(?P<whole>{_DIGITS})?(?:\.(?P<part>[0-9]{{0,60}}))?(?:[eE](?P<power>[-+]?[0-9]{{1,3}}))?"
    rf"(?:\s?/\s?(?P<below>{_DIGITS}))?(?P<unit>[^-0-9+*/=^\\<>()\[\]{{}}]*)"
)
_NO_UNIT = re.compile(r"\s?(?:[xyzn]|pi|π|dozen|hundred|thousand|million|billion)\b", re.IGNORECASE)
_IN_TEXT = re.compile(r"(?:(?<![0-9)\]])-)?\$?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?")
_MARK = re.compile(r"answer[*_]{0,3}\s{0,3}(?:is\b|:|=)\s{0,3}:?|####", re.IGNORECASE)
_FRAC = re.compile(r"\\[dt]?frac\{([0-9]{1,60})\}\{([0-9]{1,60})\}")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\{([^{}]{0,100})\}")
_NAME = re.compile(r"\s*[A-Za-z]\s*=")
_PLAIN = {"{,}": ",", "\\,": " ", "\\$": " ", "\\%": "%", "^\\circ": "", "$": " ", "€": " ", "£": " ", "−": "-"}


def boxed(text: str) -> str | None:
    r"""What stands in the last \boxed{...}, braces balanced; None where there is none or it is not closed."""
    _, found, rest = text.rpartition("\\boxed{")
    if not found:
        return None
    depth = 1
    for i, char in enumerate(rest):
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return rest[:i].strip()
    return None


def after_answer(text: str) -> str | None:
    """The line that follows the last "answer is", "answer:" or "####"; None where there is none or nothing follows."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    lines = text[marks[-1].end() :].strip(" \t\r\n*_:").splitlines()
    return lines[0].strip(" \t*_") or None if lines else None


def last_number(text: str) -> str | None:
    """The last number of a text, as it is written there."""
    found = numbers(text)
    return found[-1] if found else None


def numbers(text: str) -> list[str]:
    """All numbers of a text, as they are written there. A minus after a digit or a bracket subtracts; it is no sign."""
    return [match.group().rstrip(",") for match in _IN_TEXT.finditer(text.replace("−", "-"))]


def final_answer(text: str) -> str | None:
    r"""The answer of a reply: its last \boxed, else what follows "answer is", else its last number, or line."""
    stated = boxed(text) or after_answer(text) or last_number(text)
    if stated:
        return stated
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


def number(text: str) -> Fraction | None:
    r"""The number that a text denotes, exactly; None where it denotes none, or more than one.

    Reads signs, thousands, decimals, scientific notation, fractions (3/4, \frac{3}{4}), and drops currency, a percent
    sign, a variable ("x = 5"), a trailing full stop and units without digits.
    """
    if len(text) > LONGEST:
        return None
    text = _FRAC.sub(r"\1/\2", _TEXT.sub(r" \1", text))
    for written, plain in _PLAIN.items():
        text = text.replace(written, plain)
    name = _NAME.match(text)
    match = _NUMBER.fullmatch(text[name.end() if name else 0 :].strip(" \t\r\n*_`"))
    if not match or not (match["whole"] or match["part"]) or _NO_UNIT.match(match["unit"]):
        return None
    value = Fraction(f"{match['sign']}{(match['whole'] or '0').replace(',', '')}.{match['part'] or '0'}e{match['power'] or 0}")
    below = Fraction((match["below"] or "1").replace(",", ""))
    return value / below if below else None


def one_number(text: str) -> Fraction | None:
    """The number that a text states: all of it read as a number, or what follows its last "=", or the only one."""
    for candidate in (text, text.rpartition("=")[2]):
        if (value := number(candidate)) is not None:
            return value
    found = numbers(text.rpartition("=")[2])
    return number(found[0]) if len(found) == 1 else None


def tidy(text: str) -> str:
    """A text without what does not change an answer: case, spaces, maths delimiters, a trailing full stop."""
    text = _TEXT.sub(r"\1", text).replace("\\left", "").replace("\\right", "").replace("dfrac", "frac").replace("tfrac", "frac")
    for clutter in ("\\,", "\\!", "\\;", "\\ ", "$", "*", "`", '"'):
        text = text.replace(clutter, "")
    return " ".join(text.lower().split()).rstrip(". ")
