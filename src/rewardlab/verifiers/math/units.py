"""Read the unit after a number: "cm^2", "square centimetres", "miles per hour", "m s^{-1}", "apples"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from .layout import closing
from .text import Token, words

_NAMES = {
    "in": "inch inches", "ft": "foot feet", "yd": "yard yards", "mi": "mile miles", "furlong": "furlongs", "acre": "acres",
    "ha": "hectare hectares", "lb": "lbs pound pounds", "oz": "ounce ounces", "ton": "tons tonne tonnes", "gal": "gallon gallons",
    "qt": "quart quarts", "pt": "pint pints", "hr": "hour hours hrs h", "min": "minute minutes mins", "s": "sec secs",
    "day": "days", "week": "weeks", "fortnight": "fortnights", "month": "months", "year": "years yr yrs", "decade": "decades",
    "century": "centuries", "millennium": "millennia millenniums", "$": "dollar dollars usd bucks",
    "cent": "cents penny pennies pence", "euro": "euros", "rupee": "rupees", "yen": "", "yuan": "", "peso": "pesos",
    "ruble": "rubles roubles", "deg": "degree degrees", "rad": "radian radians", "degC": "celsius centigrade",
    "degF": "fahrenheit", "atm": "atmospheres", "bar": "bars", "rpm": "", "dB": "decibel decibels", "knot": "knots",
}  # fmt: skip
_METRIC = {
    "m": "meter metre", "g": "gram", "s": "second", "l": "liter litre L", "J": "joule", "N": "newton", "W": "watt", "V": "volt",
    "A": "ampere amp", "Hz": "hertz", "Pa": "pascal", "F": "farad", "Ω": "ohm", "C": "coulomb", "T": "tesla", "mol": "mole",
    "K": "kelvin", "eV": "electronvolt", "cal": "calorie", "Wh": "", "B": "byte",
}  # fmt: skip
"""Units with prefixes, and their names."""
_PREFIXES = {"p": "pico", "n": "nano", "µ": "micro", "m": "milli", "c": "centi", "d": "deci", "k": "kilo", "M": "mega", "G": "giga"}
_NO_UNITS = ("pm", "cd", "dB")
"""What looks like a prefix and a unit, and is something else: the afternoon."""


def _known() -> dict[str, str]:
    known = {word: unit for unit, names in _NAMES.items() for word in (unit, *names.split())}
    for unit, names in _METRIC.items():
        for sign, prefix in {"": "", **_PREFIXES}.items():
            symbols = [sign + unit] + [sign + name for name in names.split() if len(name) == 1]
            long = [prefix + name + ending for name in names.split() if len(name) > 1 for ending in ("", "s")]
            known = {word: sign + unit for word in (*symbols, *long) if word not in _NO_UNITS} | known
    return known | {"mL": "ml", "kph": "km/hr", "mph": "mi/hr"}


KNOWN = _known()
"""Word to unit of measurement. Two different units of this table are never equal."""
_MEASURES = frozenset(KNOWN.values())
_LARGE = ("thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
_SMALL = {"tenth": 10, "hundredth": 100, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "twelfth": 12}
SCALES: dict[str, Fraction | int] = {
    "dozen": 12, "hundred": 100, "lakh": 10**5, "crore": 10**7, "myriad": 10**4,
    **{name: 1000 ** (i + 1) for i, name in enumerate(_LARGE)},
    **{f"{name}ths": Fraction(1, 1000 ** (i + 1)) for i, name in enumerate(_LARGE)},
    **{f"{name}s": Fraction(1, below) for name, below in _SMALL.items()},
}  # fmt: skip
SCALES |= {f"{name}s": SCALES[name] for name in ("lakh", "crore", "hundred", *_LARGE)}
"""Words that multiply the number before them. Dozens may be what is counted."""
PERCENT = ("percent", "%", "pct", "per cent")
PER_MILLE = ("permille", "per mille", "per mil", "per mill")
# words that change the value or make the answer uncertain: with them the text is more than a unit
_FORBIDDEN = words(
    "not no nor never half halves third thirds quarter quarters except either squared cubed minus plus than is isn are was if mod "
    "wrong incorrect false maybe perhaps or and over one two three four five six seven eight nine ten eleven twelve twenty zero "
    "factorial doubled tripled quadrupled halved below under negative twice thrice modulo"
)
_WITHOUT_MEANING = ("unit", "units")
# beside a unit of measurement on the other side these say nothing that contradicts it
_BESIDE = words(
    "of the a an in all total altogether each every more less left away apart long tall wide high deep old far profit loss savings "
    "change remaining remain approximately about exactly only in now later ago early late spent earned saved paid needed"
)
_OFTEN = words("a per each every in total daily weekly altogether")
_STARTS = ("\\mu", "\\Omega", "frac")
_SILENT = (".", ",", "*", "-", "{", "}", "'")


def unit(tokens: Sequence[Token]) -> str | None:
    """The unit that the tokens after a number name, in a canonical spelling; None if they say more than a unit.

    Units of measurement become "cm^2" or "hr^-1 mi"; other words are kept as they are.
    """
    powers: dict[str, int] = {}
    other_words: list[str] = []
    power, below, grouped = 1, False, False
    parts = list(_parts(tokens))
    for at, (word, exponent) in enumerate(parts):
        after = parts[at + 1][0] if at + 1 < len(parts) else ""
        if word in _FORBIDDEN or not exponent or (word == "times" and after and after not in _OFTEN):
            return None
        if word in ("square", "sq", "cubic", "cu"):
            power = 3 if word in ("cubic", "cu") else 2
        elif word in ("/", "per"):
            below = True
        elif word in ("(", ")"):
            below, grouped = below and word == "(", word == "("
        elif word in KNOWN and not (word == "in" and after.isalpha()):
            for name, n in _measures(KNOWN[word], exponent * power * (-1 if below else 1)):
                powers[name] = powers.get(name, 0) + n
            power, below = 1, below and grouped
        elif word not in _WITHOUT_MEANING:
            if exponent != 1:
                return None
            other_words.append(word)
    if {"degC", "degF", "K"} & powers.keys():
        # degrees Celsius are one unit
        powers.pop("deg", None)
    measures = [name if n == 1 else f"{name}^{n}" for name, n in sorted(powers.items()) if n]
    return " ".join(measures) or " ".join(other_words)


def starts(tokens: Sequence[Token]) -> int:
    r"""Where a unit in signs of mathematics begins: 5 \mu\text{F}, 5 \Omega, 5 \frac{\text{m}}{\text{s}}."""
    for at, token in enumerate(tokens):
        if at and token.text in _STARTS and _starts(tokens, at):
            return at
    return len(tokens)


def _starts(tokens: Sequence[Token], at: int) -> bool:
    text, (kind, after, _) = tokens[at].text, tokens[at + 1] if at + 1 < len(tokens) else Token("end", "")
    if text == "\\Omega":
        # a product with a symbol has no space in it
        return tokens[at].apart and after in ("", "/", ".")
    if text == "frac":
        return after == "{" and at + 2 < len(tokens) and tokens[at + 2].kind == "word"
    return kind == "word" and text == "\\mu"


def conflict(reply: str, gold: str) -> bool:
    """Whether two units contradict each other: different units of measurement, or other words with none in common."""
    if not reply or not gold or reply == gold:
        return False
    measured = [all(name.partition("^")[0] in _MEASURES for name in text.split()) for text in (reply, gold)]
    if all(measured):
        return True
    if any(measured):
        # 5 apples are not 5 km, while 5 in all may be
        return not _BESIDE.issuperset((gold if measured[0] else reply).split())
    # plurals count as the same word: 3 apple, 3 apples
    return not {w.rstrip("s") for w in reply.split()} & {w.rstrip("s") for w in gold.split()}


def _measures(name: str, exponent: int) -> list[tuple[str, int]]:
    above, _, below = name.partition("/")
    return [(above, exponent), *([(below, -exponent)] if below else [])]


def _parts(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """The words and signs of a unit with their exponents; an exponent of 0 stands for what no unit has."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "frac" and token.kind == "command":
            middle = closing(tokens, at + 1) + 1
            end = closing(tokens, middle) + 1 if 0 < middle < len(tokens) else 0
            if not end:
                yield "", 0
                return
            yield from (*_parts(tokens[at + 2 : middle - 1]), ("/", 1), ("(", 1), *_parts(tokens[middle + 1 : end - 1]), (")", 1))
            at = end
            continue
        word, at = _word(tokens, at)
        # 5' is no unit, and the students' is one
        if word in _SILENT and (word != "'" or at > 1):
            continue
        exponent, at = _exponent(tokens, at) if word and word != "'" else (0, at)
        yield word, exponent


def _word(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The word or sign at a position ("" if no unit has it), and the position after it."""
    token, after = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else Token("end", "")
    if token.text == "\\mu" and after.kind == "word":
        return f"µ{after.text}", at + 2
    if token.text in ("k", "M", "m") and after.text == "\\Omega":
        return f"{token.text}Ω", at + 2
    if token.text == "\\Omega":
        return "Ω", at + 1
    if token.kind == "word":
        return token.text if token.text in KNOWN else token.text.lower(), at + 1
    # a lone letter is a symbol, but not in km/h
    if (token.text == "a" and at) or (token.kind == "name" and token.text in KNOWN and at > 1 and tokens[at - 1].text == "/"):
        return token.text, at + 1
    return (token.text if token.kind == "sign" and token.text in (*_SILENT, "/", "(", ")") else ""), at + 1


def _exponent(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """The exponent at a position (1 if there is none, 0 if it is no single digit), and the position after it."""
    if at >= len(tokens) or tokens[at].text != "^":
        return 1, at
    braced = at + 1 < len(tokens) and tokens[at + 1].text == "{"
    end = closing(tokens, at + 1) if braced else at + 1
    texts = [token.text for token in tokens[at + 1 + braced : end + (not braced)]]
    sign = -1 if texts[:1] == ["-"] else 1
    digits = texts[1:] if sign < 0 else texts
    return (sign * int(digits[0]) if len(digits) == 1 and len(digits[0]) == 1 and digits[0] in "123456789" else 0), end + 1
