"""Find what a reply in prose says to be its answer: the volume of $ABCD$ is 120, the smallest such $n$ is 12, attained for $k = 5$.

The last sentence with a value counts. What is said *to be* a value (is, are, equals, =) goes before values that are only mentioned,
and a main clause before "since ...", "when ...". Linear in the length of the text; nothing raises.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .numbers import IN_TEXT, alone, denied, qualified
from .turns import retracted

TAIL = 1000
"""Characters at the end of a reply in which the answer is looked for."""
_FORMULA = re.compile(
    r"\$\$(?P<a>[^$]{1,1000})\$\$|\\\[(?P<b>(?:[^\\]|\\[^\]\[]){1,1000}?)\\\]|\\\((?P<c>(?:[^\\]|\\[^)(]){1,1000}?)\\\)"
    r"|(?<!\\)\$(?P<d>[^$\s](?:[^$\n]{0,500}[^$\s\\])?)\$(?![0-9])"
)
_VALUE = "\x01"
_BARE = re.compile(r"(?:\\(?:angle|triangle|overline|ell|mathbf|vec|mathcal)\b|_\{?[0-9]\}?|[A-Za-z{}()\[\],_'\s|]){1,40}")
_ATTACHED = re.compile(r"(?:st|nd|rd|th)\b|[A-Za-z]{1,9}[0-9_]")
_END = re.compile(r"[.!?](?=\s|$)|\n")
_SAID = re.compile(
    rf"(?:\b(?:is|(?:it|that|this)'s|are|was|were|be|equals?|becomes|totals|so|hence|thus|therefore|leaves|gives|yields|get|obtain)\b,?|(?<![<>!=])=(?!=)|(?<!{_VALUE}):)"
    rf"(?:\s(?:(?:equal|down|up)\sto|exactly|simply|just|then|therefore|thus|hence|also|now|only|given\sby))?[\s*_:]{{0,5}}"
    rf"(?P<values>{_VALUE}(?:[\s*_]{{0,3}}(?:,|;|,?\s?and|,?\s?or)[\s*_]{{0,3}}{_VALUE})*)"
)
_SAID_OF = re.compile(rf"(?P<values>{_VALUE})[\s*_]{{0,3}}(?:is|are)\s(?:the|our|an?)\b")
_SUBORDINATE = re.compile(
    r"\b(?:since|because|as|where|when|whenever|if|for|which|whose|while|whereas|provided|attained|achieved|reached|occurring)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(r"\b(?:so|thus|hence|therefore|then|total|altogether)\b", re.IGNORECASE)
_COMPUTED = re.compile(rf"[-+*/×÷–x]\s?{_VALUE}[^={_VALUE}]{{0,30}}$")
_CHANGED = re.compile(
    r"\bor\s(?:more|less|fewer)\b|\b(?:plus|minus|squared|cubed|wrong|incorrect|maybe|perhaps)\b|\?|[+^]|\sand\s(?:a|one)\s(?:half|third|quarter)\b"
    r"|^\s?(?:half|halves|thirds?|quarters?)\b|\btimes\s(?:as|the|that|its|his|her|larger|more|bigger)\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"\b(?:more|less|fewer|greater|larger|smaller|higher|lower)\s(?:[a-z]{1,12}\s)?than\b", re.IGNORECASE)
_ALSO = re.compile(rf"(?:\b(?:and|or|but)|,)[\s*_]{{1,3}}(?:it\sis\s)?{_VALUE}")
_BESIDE = re.compile(
    rf"\b(?:in|at|after|per|within|during|on|every|from)\s(?:the\s)?(?:(?:first|last|next)\s)?{_VALUE}", re.IGNORECASE
)
_MINUS = re.compile(r"^(?:minus|negative)\s", re.IGNORECASE)
_UNTIL = re.compile(rf"[,;:()]|{_VALUE}|\b(?:but|so)\b")


class Value(NamedTuple):
    """A formula or number at start:end of the text."""

    start: int
    end: int
    formula: bool


def claim(text: str, last: bool = False) -> str | None:
    """What the last sentence with a value says; "" if it says nothing definite; None if the text has no value or cannot be read.

    last: of several values, none of which is said to be the answer, the last counts; else the text says nothing definite.
    """
    text = _tail(text)
    values = _values(text)
    masked = _masked(text, values)
    if not values or "\\" in masked:
        return None
    ends = [match.end() for match in _END.finditer(masked, 0, masked.rindex(_VALUE))]
    start = ends[-1] if ends else 0
    stop = match.end() if (match := _END.search(masked, masked.rindex(_VALUE))) else len(masked)
    sentence, own = masked[start:stop], values[masked.count(_VALUE, 0, start) :]
    if sentence.rstrip().endswith("?") or retracted(text[values[-1].end :]):
        return ""
    if found := _said(text, sentence, own):
        start, stop = found.span("values")
        first = sentence.count(_VALUE, 0, start)
        rest = _rest(sentence, stop)
        # 24 - 16 = 8 more than before states 8, while to be 8 more than before is to be more than 8
        compared = found.group()[0] != "=" and _COMPARED.search(rest)
        if compared or _CHANGED.search(rest) or _goes_on(text, sentence, own, stop):
            return ""
        return _stated(text, own[first : first + sentence.count(_VALUE, start, stop)])
    if len({text[value.start : value.end] for value in own if not _bare(text, value)}) > 1 and not last:
        return ""
    # a name such as $ABC$ is no value where another one is
    meant = [value for value in own if not _bare(text, value)] or own
    return _stated(text, meant[-1:])


def _tail(text: str) -> str:
    """The end of a reply, from the line of its last digit on, unless that line is part of a formula."""
    text = text.strip()
    if len(text) > TAIL:
        text = text[-TAIL:]
        text = text[text.find("\n") + 1 :]
    last = max(map(text.rfind, "0123456789"))
    start = text.rfind("\n", 0, last) + 1 if last >= 0 else 0
    before, line = text[:start], text[start:]
    pairs = (("\\[", "\\]"), ("\\(", "\\)"))
    whole = all(part.count("$") % 2 == 0 and all(part.count(a) == part.count(b) for a, b in pairs) for part in (before, line))
    whole = whole and before.count("$$") % 2 == 0
    return (line if whole else text).replace("{,}", ",").replace("\\$", "$").replace("\\%", "%").replace("−", "-")


def _values(text: str) -> list[Value]:
    formulas = [Value(*match.span(), True) for match in _FORMULA.finditer(text)]
    numbers: list[Value] = []
    at = 0
    for formula in [*formulas, Value(len(text), len(text), True)]:
        for match in IN_TEXT.finditer(text, at, formula.start):
            start, end = match.start(), match.start() + len(match.group().rstrip(","))
            if numbers and text[numbers[-1].end : start] == ":":
                # 2:3 is one value
                numbers[-1] = Value(numbers[-1].start, end, False)
            elif not _ATTACHED.match(text, end) and not (start and (text[start - 1].isalpha() or text[start - 1] == "_")):
                numbers.append(Value(start, end, False))
        at = formula.end
    return sorted(formulas + numbers)


def _masked(text: str, values: list[Value]) -> str:
    """The text with one sign for each value."""
    gaps = zip([0, *(value.end for value in values)], [*(value.start for value in values), len(text)], strict=True)
    return _VALUE.join(text[a:b].replace(_VALUE, " ") for a, b in gaps)


def _said(text: str, sentence: str, own: list[Value]) -> re.Match[str] | None:
    """Where the sentence says what something is: the last such place in a main clause, or the end of a computation."""
    found: re.Match[str] | None = None
    for match in _SAID.finditer(sentence):
        if _bare(text, own[sentence.count(_VALUE, 0, match.start("values"))]):
            continue
        between = sentence[found.end() : match.start()] if found else ""
        computed = match.group()[0] == "=" and _COMPUTED.search(sentence, max(0, match.start() - 40), match.start())
        if computed or not _SUBORDINATE.search(between) or _CONCLUDES.search(between):
            found = match
    if not found:
        turned = (match for match in _SAID_OF.finditer(sentence))
        found = next((m for m in turned if not _bare(text, own[sentence.count(_VALUE, 0, m.start())])), None)
    return found


def _rest(sentence: str, start: int) -> str:
    """The rest of the clause, up to the next comma, value or subordinate clause."""
    ends = [match.start() for pattern in (_UNTIL, _SUBORDINATE) if (match := pattern.search(sentence, start))]
    return sentence[start : min(ends, default=len(sentence))]


def _goes_on(text: str, sentence: str, own: list[Value], start: int) -> bool:
    """Whether another value follows that belongs to the answer, or is one too: 5 dollars and 3 cents; 7 if n is even and 8 if not.

    Equations such as $k = 5$, and values in a subordinate clause or after "in", "at", ..., do not.
    """
    place = start
    while (place := sentence.find(_VALUE, place)) >= 0:
        value = own[sentence.count(_VALUE, 0, place)]
        before = sentence[start : place + 1]
        mentioned = _bare(text, value) or (value.formula and "=" in text[value.start : value.end])
        if not mentioned and (_joined(_ALSO, before) or not (_SUBORDINATE.search(before) or _joined(_BESIDE, before))):
            return True
        place += 1
    return False


def _joined(pattern: re.Pattern[str], before: str) -> bool:
    """Whether the text ends on the pattern."""
    return any(match.end() == len(before) for match in pattern.finditer(before, max(0, len(before) - 40)))


def _stated(text: str, chosen: list[Value]) -> str | None:
    """The text of neighbouring values; "" if one is denied, None if it goes on beyond what is read here, as in "2 + x"."""
    for value in chosen:
        if denied(text, value.start, value.end):
            return ""
        if qualified(text, value.start) or not (value.formula or alone(text, value.start, value.end)):
            return "" if value.formula else None
    start, end = chosen[0].start, chosen[-1].end
    percent = next((sign for sign in ("%", " %", " percent", " pct", " per cent") if text.startswith(sign, end)), "")
    formula = text[start:end]
    return _MINUS.sub("-", _bare_of(formula) if len(chosen) == 1 and chosen[0].formula else formula) + percent


def _bare(text: str, value: Value) -> bool:
    """Whether a formula is only a name, as $ABC$, $n$ and $(a, b)$ are."""
    return value.formula and bool(_BARE.fullmatch(_bare_of(text[value.start : value.end])))


def _bare_of(formula: str) -> str:
    """A formula without its delimiters."""
    size = 1 if formula[0] == "$" and not formula.startswith("$$") else 2
    return formula[size:-size].strip()
