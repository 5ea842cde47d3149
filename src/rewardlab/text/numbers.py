"""Read numbers exactly: which number a text denotes, and whether a number in a text stands for itself.

The 2 of "2 million", of "-(2)" or of "at least 2" does not. Nothing here raises, whatever the text, and every pattern runs in
linear time: replies are untrusted, so a pattern must not backtrack.
"""

from __future__ import annotations

import re
from collections import deque
from fractions import Fraction

from .revoked import revoked

LONGEST = 200
"""Characters of the longest text that is read as one number."""

_WHOLE = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,10}(?![0-9])|[0-9]{1,3}(?: [0-9]{3}){1,10}(?![0-9])|[0-9]{1,60})"
_FACTORS = {
    "dozen": 12, "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "m": 10**6, "b": 10**9, "bn": 10**9,
}  # fmt: skip
# "5k" and "5M" are thousands and millions, while "5 K" is a temperature and "5m" a length
_FACTOR = r"(?:\s{0,2}(?i:dozen|hundred|thousand|million|billion|trillion)s?\b|(?:[kKMB]|bn)\b)"
_SIGN = r"(?:[-+]|(?i:minus|negative)\s)"
_NUMBER = re.compile(
    rf"(?P<sign>{_SIGN}?)\s?(?P<whole>{_WHOLE})?(?P<mixed> [0-9]{{1,9}}(?=\s?/))?(?:\.(?P<part>[0-9]{{0,60}}))?"
    rf"(?:[eE](?P<power>[-+]?[0-9]{{1,3}})(?![0-9]))?(?:\s?/\s?(?P<below>{_WHOLE}))?(?P<factor>{_FACTOR})?"
    r"(?P<unit>(?![⁰¹²³⁴-⁹√!])[^-0-9+*/=^\\<>()\[\]{}|]*)"
)
_NO_UNIT = re.compile(
    r"\s{0,2}(?:(?:[xyzn]|pi|π|dozen|hundred|thousand|million|billion|trillion|tenths?|(?:hundred|thousand|million)ths?|squared|cubed"
    r"|factorial|minus|plus|or)\b|(?-i:[ie])\b|!)|[π√×·∞]",
    re.IGNORECASE,
)
IN_TEXT = re.compile(
    # a spaced minus is a sign where nothing stands to its left that it could subtract from or divide into items
    r"(?:(?<![0-9)\]])-|(?<=[=:(] )-\s|(?<=[=:(])-\s|(?<=\bis )-\s|(?<![0-9)\]] )\b(?i:minus|negative)\s)?\$?"
    r"(?:[0-9]{1,3}(?: [0-9]{3}){1,10}(?![0-9,])|[0-9][0-9,]*(?:(?<=[0-9]) [0-9]{1,3}(?=\s?/\s?[0-9]))?|(?<![\w.])(?=\.[0-9]))"
    rf"(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{{1,3}}(?![0-9A-Za-z]))?(?:\s?/\s?[0-9]+)?{_FACTOR}?"
)
"""A number in running text. A minus after a digit or a bracket is subtraction, not a sign."""
_GROUPED = re.compile(
    # it begins with a digit and looks back then, which is several times as fast as to look back first
    r"[0-9](?<![0-9.,'’][0-9])[0-9]{0,2}(?:(?P<points>(?:\.[0-9]{3}){2,10}|(?:\.[0-9]{3})(?=,[0-9]))(?:,(?P<part>[0-9]{1,20}))?"
    r"|(?:,[0-9]{2}){1,9},[0-9]{3}|(?:['’][0-9]{3}){1,10})(?![0-9]|[.,'’][0-9])"
)
_TO_LAST_DIGIT = re.compile("(?s:.*)[0-9]")
_FRAC = re.compile(
    r"(?P<before>[0-9](?:\\[,;:! ]|[ ~]){0,3}|[).}\]])?\\(?:[dtc]?frac|nicefrac|sfrac)"
    r"(?:\s?\{\s?([0-9]{1,60})\s?\}|\s?([0-9]))(?:\s?\{\s?([0-9]{1,60})\s?\}|\s?([0-9]))(?!\.?[0-9])"
)
_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\{([^{}]{0,100})\}")
_ORDINAL = re.compile(r"(?<=[0-9])\s?\^?\{?\s?(?:st|nd|rd|th)\s?\}?(?![A-Za-z])")
_NAME = re.compile(r"\s*[A-Za-z]\s*=")
_EQUALS = re.compile(r"(?<![<>!=])=(?!=)")
_POWER_OF_TEN = re.compile(r"(?<=[0-9])\s?(?:×|\\times|\\cdot|[x*])\s?10\s?\^\s?\{?([-+]?[0-9]{1,3})\}?")
_PLAIN = {
    "{,}": ",", "\\,": " ", "\\$": " ", "\\%": "%", "^\\circ": "", "\\(": "", "\\)": "", "\\!": "", "$": " ", "€": " ", "£": " ",
    "=>": "=", "->": "=",
}  # fmt: skip
_DIGITS = "０１２３４５６７８９٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९০১২৩৪৫৬৭৮৯౦౧౨౩౪౫౬౭౮౯๐๑๒๓๔๕๖๗๘๙"
"""Full-width, Arabic, Persian, Devanagari, Bengali, Telugu and Thai ones."""
_TO_ASCII = str.maketrans(f"{_DIGITS}．，٫٬－\u00a0\u202f\u2009", f"{'0123456789' * 7}.,.,-   ")
_SIGNS = str.maketrans(f"{_DIGITS}．，٫٬－−–⁄\u00a0\u202f\u2009", f"{'0123456789' * 7}.,.,---/   ")
_SHARES = {
    "½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5", "⅙": "1/6",
    "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_SHARE = re.compile(rf"(?<=[0-9])\s?([{''.join(_SHARES)}])(?![0-9])|([{''.join(_SHARES)}])(?![0-9])")

_NEGATION = re.compile(r"\b(?:not|never|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|no|neither|cannot)|n't)\s(?:[a-z]{1,10}\s){0,3}\$?$|(?:≠|\\neq?)\s?$", re.IGNORECASE)
_DENYING = re.compile("[nN][oOeE'’]|≠")
_FUNCTIONS = ("sqrt", "root", "log", "ln", "sin", "cos", "tan", "exp", "abs")
_OPERATION = re.compile(
    # an operator, an inequality or a function to the left of it; a lone * is emphasis
    r"(?:(?<![\w\s])[-−]\s?[($\[{]{1,3}|(?<![^\s>])[-−—]\s?[($\[{]{0,3}|[\w)\]](?:\s[+*×·^/]\s|[+*×·^/])[($\[{]{0,3}|[√≠≤≥^_{/]|!="
    r"|(?<![-=])[<>]=?|\w[-−]\(|\\(?!approx|Rightarrow|implies|to\b|quad|therefore)[A-Za-z]{1,20}|[A-Za-z]\("
    r"|(?i:\b(?:sqrt|root|log|ln|sin|cos|tan|exp|abs)))\s?\$?$|\|$|[0-9][eE][-+]?$"
)
# letters before a number, or after it and before the next digit, make it part of a name: B12, H2O, AZYUK2A
_NAMED = re.compile(r"(?:(?<![A-Za-z])(?:USD|EUR|GBP|CAD|AUD|INR|Rs|RM)|(?P<name>(?<![A-Za-z\\])[A-Za-z]{1,60}|[A-Za-z0-9]_))$")
_NAMES_ON = re.compile(r"[A-Za-z]{1,20}[0-9_]|(?i:st|nd|rd|th)\b")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,40}>\s?$")
_QUALIFIED = re.compile(
    r"\b(?:least|most|than|between|minus|plus|negative|half|twice|double|triple|thrice|times|over|under|above|below|root|or|except"
    r"|(?:any\w{0,5}|all|every\w{0,5})\sbut)\s(?:(?:of|the|a|about|around|exactly|only)\s)?\$?$",
    re.IGNORECASE,
)
_QUALIFYING = (
    "of", "the", "a", "about", "around", "exactly", "only",
    "least", "most", "than", "between", "minus", "plus", "negative", "half", "twice", "double", "triple", "thrice", "times", "over",
    "under", "above", "below", "root", "or", "except", "but",
)  # fmt: skip
_CONTINUED = re.compile(
    r"\s{0,2}(?:[_^!⁰¹²³⁴-⁹√π×·≤≥≠}]|\\(?![%$,)\]\s]|text|mathrm|circ|approx)|[-+*/]\s?(?:[a-z]\b|[(\\√π0-9])|[<>](?![/a-zA-Z!])"
    r"|(?:[xyzn]|pi|dozen|hundred|thousand|million|billion|trillion|tenths?|(?:hundred|thousand|million)ths?|squared|cubed|factorial|minus|plus"
    r"|or)\b|(?-i:[ie])\b)|\.[0-9]",
    re.IGNORECASE,
)
_EXCLAIMED = re.compile(r"(?<=[0-9])!(?=\s{0,9}(?:$|[A-Z]))")


def ascii_digits(text: str) -> str:
    """A text with its digits of other scripts as 0 to 9, and with full-width signs and narrow spaces as plain ones."""
    return text if text.isascii() else text.translate(_TO_ASCII)


def ungrouped(text: str) -> str:
    """A text whose numbers have no thousands separators that no other reading has: 1.234.567 and 1.234,5 and 1,00,000 and 5'600."""
    if "." in text or "," in text or "'" in text or "’" in text:
        return _GROUPED.sub(_together, text)
    return text


def _together(match: re.Match[str]) -> str:
    part = match["part"]
    digits = re.sub("[.,'’]", "", match.group()[: -len(part)] if part else match.group())
    return f"{digits}.{part}" if part else digits


def plain(text: str) -> str:
    r"""A text with its numbers in plain digits and signs: \frac{3}{4} is 3/4, ½ is 1/2, 5 × 10^3 is 5e3."""
    if not text.isascii():
        text = _SHARE.sub(lambda m: f" {_SHARES[m[1]]}" if m[1] else _SHARES[m[2]], text.translate(_SIGNS))
    text = ungrouped(text)
    if "\\" in text:
        text = _FRAC.sub(_slashed, _TEXT.sub(r" \1", text))
    return _POWER_OF_TEN.sub(r"e\1", text) if "10" in text else text


def _slashed(fraction: re.Match[str]) -> str:
    before, *digits = fraction.groups()
    if before and not before[0].isdigit():
        # a product, as in (x+1)\frac{1}{2}, is no number
        return fraction.group()
    above, below = filter(None, digits)
    return f"{before[0]} {above}/{below}" if before else f"{above}/{below}"


def number(text: str) -> Fraction | None:
    r"""The exact value of a text that denotes one number; None if it denotes none, or several.

    Reads signs (also "minus"), thousands separators, decimals, scientific notation, fractions (3/4, \frac{3}{4}, ½), mixed
    numbers, and factors (5 million, 5k). Drops currency, a percent sign, a variable ("x = 5"), a trailing full stop, and units
    without digits.
    """
    if len(text) > LONGEST:
        return None
    text = plain(text)
    for latex, sign in _PLAIN.items():
        text = text.replace(latex, sign)
    if "th" in text or "st" in text or "nd" in text or "rd" in text:
        text = _ORDINAL.sub("", text)
    name = _NAME.match(text)
    match = _NUMBER.fullmatch(text[name.end() if name else 0 :].rstrip(" \t\r\n.*_`").lstrip(" \t\r\n*_`"))
    if not match or not (match["whole"] or match["part"]) or _NO_UNIT.match(unit := match["unit"]):
        return None
    # one word takes nothing back
    if unit and not unit.strip().isalpha() and revoked(unit, 0):
        return None
    return _value(match)


def _value(match: re.Match[str]) -> Fraction | None:
    whole = (match["whole"] or "0").replace(",", "").replace(" ", "")
    below = int((match["below"] or "1").replace(",", "").replace(" ", ""))
    if not below:
        return None
    if match["mixed"]:
        # "1 1/2" has a whole part, a numerator and a denominator, while "1 3/2" may be a product
        if match["part"] or match["power"] or not match["below"] or int(match["mixed"]) >= below:
            return None
        value = Fraction(whole) + Fraction(match["mixed"].strip()) / below
    elif match["part"] or match["power"]:
        value = Fraction(f"{whole}.{match['part'] or '0'}e{match['power'] or 0}") / below
    else:
        value = Fraction(int(whole), below)
    factor = _FACTORS.get((match["factor"] or "").strip().lower().removesuffix("s"), 1)
    return (-value if match["sign"][:1] in ("-", "m", "M", "n", "N") else value) * factor


def one_number(text: str) -> Fraction | None:
    """The number that a text states: the whole text as a number, else what follows its last "=", else the only number in it."""
    if (value := number(text)) is not None:
        return value
    text = plain(text).replace("=>", "= ").replace("->", "= ")
    start = max((match.end() for match in _EQUALS.finditer(text)), default=0)
    if start and not _NEGATION.search(text[:start]) and (value := number(text[start:])) is not None:
        return value
    matches = list(IN_TEXT.finditer(text, start))
    if len(matches) != 1 or _NEGATION.search(text[: matches[0].start()]) or not alone(text, *matches[0].span()):
        return None
    return number(matches[0].group().rstrip(","))


def exclaimed(prose: str) -> str:
    """A text whose numbers are exclaimed ("It is 5! Done.") without the exclamation marks, which are no factorials there."""
    return _EXCLAIMED.sub(" ", prose) if "!" in prose else prose


def last_number(text: str) -> str | None:
    """The last number of a text; None if there is none, the text denies it ("not 42"), or it is part of an expression."""
    text = exclaimed(plain(text))
    digit = _TO_LAST_DIGIT.match(text)
    # no number is as long as that and goes on over a line
    start = text.rfind("\n", 0, max(0, digit.end() - LONGEST)) + 1 if digit else len(text)
    last = next(iter(deque(IN_TEXT.finditer(text, start), maxlen=1)), None)
    return last.group().rstrip(",") if last and alone(text, *last.span()) else None


def numbers_of(text: str) -> set[Fraction]:
    """All numbers of a text that can be read."""
    values = (number(match.group().rstrip(",")) for match in IN_TEXT.finditer(plain(text)))
    return {value for value in values if value is not None}


def denied(text: str, start: int, end: int) -> bool:
    """Whether the text rejects what it says at start:end, as in "not 42" or "42 is wrong"."""
    before = text[max(0, start - 60) : start]
    # most texts before a value have no such letters, and finding that out takes less time than the pattern
    denies = _DENYING.search(before) and _DENIED.search(before.rstrip(" $\\([") + " ")
    return bool(denies) or revoked(text, end)


def alone(text: str, start: int, end: int) -> bool:
    """Whether the number at start:end stands for itself (unlike the 2 of \\frac{1}{2} or "2 million") and is not denied."""
    return not denied(text, start, end) and unattached(text, start, end)


def unattached(text: str, start: int, end: int) -> bool:
    """Whether the number at start:end is not a part of an expression, a name or an amount such as "2 million"."""
    before = text[max(0, start - 60) : start]
    if _CONTINUED.match(text, end) or _NAMES_ON.match(text, end):
        return False
    if before.rstrip().endswith(">"):
        before = _TAG.sub("", before)
    named = _NAMED.search(before) if before[-1:].isalnum() or before[-1:] == "_" else None
    if named and named["name"]:
        return False
    # after a plain word there is no operation, but sqrt and the like
    word = before[:-1] if before.endswith(" ") else ""
    plain = word[-1:].isalpha() and "\\" not in before and not word.lower().endswith(_FUNCTIONS)
    # an operation is within the last 28 characters
    return not ((not plain and _OPERATION.search(before, max(0, len(before) - 32))) or _qualified(before))


def qualified(text: str, start: int) -> bool:
    """Whether words before the position change the value that follows, as in "twice 5" and "at least 5"."""
    return _qualified(text[max(0, start - 32) : start])


def _qualified(before: str) -> bool:
    last = before[-32:].rstrip(" $").lower().rpartition(" ")[2].lstrip("*_([-")
    # most last words are neither, and finding that out takes less time than the pattern
    return last.endswith(_QUALIFYING) and bool(_QUALIFIED.search(before[-32:]))
