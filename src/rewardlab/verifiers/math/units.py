"""Read the unit after a number: "cm^2", "square centimetres", "miles per hour", "apples"."""

from __future__ import annotations

from collections.abc import Sequence

from .text import Token, words

_NAMES = {
    "cm": "centimeter centimeters centimetre centimetres", "mm": "millimeter millimeters millimetre millimetres",
    "km": "kilometer kilometers kilometre kilometres", "m": "meter meters metre metres", "in": "inch inches",
    "ft": "foot feet", "yd": "yard yards", "mi": "mile miles", "kg": "kilogram kilograms", "g": "gram grams",
    "mg": "milligram milligrams", "lb": "lbs pound pounds", "oz": "ounce ounces", "ml": "milliliter milliliters mL", 
    "l": "liter liters litre litres L", "hr": "hour hours hrs h", "min": "minute minutes mins",
    "s": "second seconds sec secs", "day": "days", "week": "weeks",
    "month": "months", "year": "years", "$": "dollar dollars usd bucks", "cent": "cents", "euro": "euros", "deg": "degree degrees",
    "rad": "radian radians",
}  # fmt: skip
KNOWN = {word: unit for unit, words in _NAMES.items() for word in (unit, *words.split())}
"""Word to unit of measurement. Two different units of this table are never equal."""
SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
"""Words that multiply the number before them."""
PERCENT = ("percent", "%", "pct", "per cent")
PER_MILLE = ("permille", "per mille", "per mil", "per mill")
# words that change the value or make the answer uncertain: with them the text is more than a unit
_FORBIDDEN = words(
    "not no nor never half halves third thirds quarter quarters except either squared cubed minus plus than is isn are was if mod "
    "wrong incorrect false maybe perhaps or and over one two three four five six seven eight nine ten eleven twelve twenty"
)
_WITHOUT_MEANING = ("unit", "units")


def unit(tokens: Sequence[Token]) -> str | None:
    """The unit that the tokens after a number name, in a canonical spelling; None if they say more than a unit.

    Units of measurement become "cm^2" or "mi/hr"; other words are kept as they are.
    """
    if any(token.kind in ("number", "command") or token.text.lower() in _FORBIDDEN for token in _without_powers(tokens)):
        return None
    measures: list[str] = []
    other_words: list[str] = []
    power, below, at = 1, False, 0
    while at < len(tokens):
        token, at = tokens[at], at + 1
        word = token.text if token.text in KNOWN else token.text.lower()
        if word in ("square", "sq", "cubic", "cu"):
            power = 3 if word in ("cubic", "cu") else 2
        elif word in ("/", "per"):
            below = True
        elif word == "mph":
            measures.append("mi/hr")
        elif word in KNOWN:
            raised, at = _power(tokens, at)
            measures.append(("/" if below else "") + KNOWN[word] + ("" if (n := raised * power) == 1 else f"^{n}"))
            power, below = 1, False
        elif token.kind == "word" or (word == "a" and (measures or other_words)):
            other_words += [] if word in _WITHOUT_MEANING else [word]
        elif token.kind == "name" or word not in (".", ",", "*", "(", ")", "-", *("'" if measures or other_words else "")):
            return None
    # the units below the fraction bar last, whatever their order in the text
    return "".join(sorted(measures, key=lambda name: name[0] == "/")) or " ".join(other_words)


def conflict(reply: str, gold: str) -> bool:
    """Whether two units contradict each other: different units of measurement, or other words with none in common."""
    if not reply or not gold or reply == gold:
        return False
    measures = [name.lstrip("/").partition("/")[0].partition("^")[0] in _NAMES for name in (reply, gold)]
    if all(measures):
        return True
    # plurals count as the same word: 3 apple, 3 apples
    return not any(measures) and not {w.rstrip("s") for w in reply.split()} & {w.rstrip("s") for w in gold.split()}


def _without_powers(tokens: Sequence[Token]) -> Sequence[Token]:
    return [token for i, token in enumerate(tokens) if not (i and tokens[i - 1].text in ("^", "{") and token.kind == "number")]


def _power(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """The exponent at a position (1 if there is none), and the position after it."""
    if at < len(tokens) and tokens[at].text == "^":
        exponent = [token for token in tokens[at + 1 : at + 4] if token.text not in "{}"]
        braces = 2 if at + 1 < len(tokens) and tokens[at + 1].text == "{" else 0
        if exponent and exponent[0].text in ("2", "3"):
            return int(exponent[0].text), at + 2 + braces
    return 1, at
