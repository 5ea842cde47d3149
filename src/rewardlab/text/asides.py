"""What a reply adds to its answer without another one: 13 (8 + 5); 7, not 8; 7 days, or 1 week. Linear time; nothing raises."""

from __future__ import annotations

import re
from fractions import Fraction

_NUMBER = r"(?:\$\s?)?[0-9][0-9,]{0,20}(?:\.[0-9]{1,20})?"
_COMPUTED = re.compile(
    rf"(?P<value>(?<![\w.,])-?{_NUMBER})(?P<between>%?(?:\s[A-Za-z]{{1,20}}){{0,4}}[*_]{{0,3}})\s\((?P<sum>{_NUMBER}(?:\s?[-+*/×÷]\s?{_NUMBER}){{1,12}})"
    rf"(?:\s?=\s?{_NUMBER})?\)"
    r"(?=\s?[*_]{0,3}\s?(?:[.!,;\n]|$))"
)
_NOT = re.compile(
    rf"(?P<value>(?<![\w.,])-?{_NUMBER}%?(?:\s[a-z]{{1,15}}){{0,2}}[*_]{{0,3}}),?\s"
    rf"(?:and\s)?(?:not|rather\sthan|instead\sof)\s[*_]{{0,3}}-?{_NUMBER}%?(?:\s[a-z]{{1,15}}){{0,2}}[*_]{{0,3}}"
    r"(?=\s?(?:[!;\n]|\.(?:\s|$)|$))",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:not|never|neither|nor|cannot)\b|n['’]t\b", re.IGNORECASE)
_EITHER_UNIT = re.compile(
    rf"(?P<one>(?<![\w.,])-?{_NUMBER})\s(?P<unit>[a-z]{{1,12}})[*_]{{0,3}},?\s"
    rf"(?:or|which\sis|that\sis|i\.e\.,?)\s[*_]{{0,3}}(?P<other>{_NUMBER})\s(?P<second>[a-z]{{1,12}})\b(?=\s?[*_]{{0,3}}\s?(?:[.!;\n]|$))",
    re.IGNORECASE,
)
TAIL = 300
"""Characters at the end of a text that are looked at."""
_SIZES = {
    "second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600), "day": ("time", 86400), "week": ("time", 604800),
    "month": ("months", 1), "year": ("months", 12),
    "millimeter": ("length", 1), "centimeter": ("length", 10), "meter": ("length", 1000), "kilometer": ("length", 10**6),
    "mm": ("length", 1), "cm": ("length", 10), "m": ("length", 1000), "km": ("length", 10**6),
    "inch": ("feet", 1), "foot": ("feet", 12), "feet": ("feet", 12), "yard": ("feet", 36), "mile": ("feet", 63360),
    "gram": ("mass", 1), "g": ("mass", 1), "kilogram": ("mass", 1000), "kg": ("mass", 1000),
    "ounce": ("ounces", 1), "pound": ("ounces", 16),
    "milliliter": ("volume", 1), "ml": ("volume", 1), "liter": ("volume", 1000), "l": ("volume", 1000),
    "cent": ("money", 1), "dollar": ("money", 100), "item": ("count", 1), "dozen": ("count", 12),
}  # fmt: skip
_SPELLINGS = {"metres": "meter", "metre": "meter", "litres": "liter", "litre": "liter", "inches": "inch"}


def without_asides(text: str, question: str = "") -> str:
    """The text without computations and denied values beside a value; of an amount in two units, the one that is asked for."""
    # the answer is in the last sentence
    start = text.rfind(" ", 0, max(0, len(text) - TAIL)) + 1
    tail = text[start:]
    if "(" in tail:
        tail = _COMPUTED.sub(_if_equal, tail)
    if "not " in tail or "rather " in tail or "instead " in tail:
        tail = _NOT.sub(lambda match: match.group() if _denied(match) else match["value"], tail)
    if question and (" or " in tail or "which is " in tail or "that is " in tail or "i.e." in tail):
        tail = _EITHER_UNIT.sub(lambda match: _asked(match, question), tail)
    return text[:start] + tail


def _denied(match: re.Match[str]) -> bool:
    return bool(_DENIES.search(match.string, max(0, match.start() - 30), match.start()))


def _if_equal(match: re.Match[str]) -> str:
    """Without the computation where it comes to the value."""
    return match["value"] + match["between"] if _computed(match["sum"]) == _number(match["value"]) else match.group()


def _number(text: str) -> Fraction:
    return Fraction(re.sub(r"[$,\s]", "", text))


def _computed(text: str) -> Fraction | None:
    """What a sum of products of numbers comes to."""
    signs = re.findall(r"(?<=[0-9])\s?([-+*/×÷])", text)
    first, *rest = [_number(part) for part in re.split(r"(?<=[0-9])\s?[-+*/×÷]\s?", text)]
    total, product = Fraction(0), first
    for sign, value in zip(signs, rest, strict=True):
        if sign in "*×":
            product *= value
        elif sign in "/÷":
            if not value:
                return None
            product /= value
        else:
            total, product = total + product, value if sign == "+" else -value
    return total + product


def _asked(match: re.Match[str], question: str) -> str:
    """The amount in the unit that the question names, where both are equal and it names just one."""
    one, other = _size(match["unit"]), _size(match["second"])
    if not one or not other or one[0] != other[0] or one == other:
        return match.group()
    if _number(match["one"]) * one[1] != _number(match["other"]) * other[1]:
        return match.group()
    asked = [unit for unit in (match["unit"], match["second"]) if _names(question, unit)]
    if len(asked) != 1:
        return match.group()
    return f"{match['one']} {match['unit']}" if asked[0] == match["unit"] else f"{match['other']} {match['second']}"


def _size(unit: str) -> tuple[str, int] | None:
    unit = unit.lower()
    return _SIZES.get(_SPELLINGS.get(unit, unit)) or _SIZES.get(unit.removesuffix("s"))


def _names(question: str, unit: str) -> bool:
    """Whether the question asks for this unit: how many days, in days."""
    stem = re.escape(unit.lower().removesuffix("s"))
    return bool(
        re.search(
            rf"\b(?:how\s(?:many|much)|(?:time|long|far|number|total)[a-z\s]{{0,30}}?\sin|number\sof)\s{stem}",
            question[-5000:],
            re.IGNORECASE,
        )
    )
