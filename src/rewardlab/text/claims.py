"""Find what a reply in prose says to be its answer: the volume of $ABCD$ is 120, the smallest such $n$ is 12, attained for $k = 5$.

The last sentence with a value counts. What is said *to be* a value (is, are, equals, =) goes before values that are only mentioned,
and a main clause before "since ...", "when ...". Of values that are only mentioned, the one in bold counts, else the result of the
last equation, else the last: "So 8 pens cost $12.00." Linear in the length of the text; nothing raises.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .numbers import denied, number, qualified, unattached, ungrouped
from .offers import guesses
from .turns import retracted
from .values import TO_LAST_DIGIT, VALUE, Value, is_name, masked_of, sentence_start, undelimited, values_of

TAIL = 1000
"""Characters at the end of a reply in which the answer is looked for."""
_END = re.compile(r"[.!?](?=\s|$)|\n")
_SAID = re.compile(
    rf"(?:\b(?:is|(?:it|that|this)'s|are|was|were|be|equals?|becomes|totals|so|hence|thus|therefore|leaves|gives|yields|get|obtain)\b,?|(?<![<>!=])=(?!=)|(?<!{VALUE}):)"
    rf"(?:\s(?:(?:equal|equivalent|down|up)\sto|exactly|simply|just|then|therefore|thus|hence|also|now|only|given\sby))?[\s*_:]{{0,5}}"
    rf"(?P<values>{VALUE}(?:[\s*_]{{0,3}}(?:,|;|,?\s?and|,?\s?or)[\s*_]{{0,3}}{VALUE})*)"
)
_SAID_OF = re.compile(rf"(?P<values>{VALUE})[\s*_]{{0,3}}(?:is|are)\s(?:the|our|an?)\b")
_SUBORDINATE = re.compile(
    r"\b(?:since|because|as|where|when|whenever|if|for|which|whose|while|whereas|provided|attained|achieved|reached|occurring)\b",
    re.IGNORECASE,
)
_AFTER_LATEX = re.compile(r"(?s:.*)\\(?:end\{[a-z]{1,12}\*?\}|[\])])\s{1,3}(?=[A-Z][a-z]{1,15}[\s,][^\\]*[0-9][^\\]*$)")
_CONCLUDES = re.compile(r"\b(?:so|thus|hence|therefore|then|total|altogether)\b", re.IGNORECASE)
_COMPUTED = re.compile(rf"[-+*/×÷–x]\s?{VALUE}[^={VALUE}]{{0,30}}$")
_CHANGED = re.compile(
    r"\bor\s(?:more|less|fewer)\b|\b(?:plus|minus|squared|cubed|wrong|incorrect|maybe|perhaps)\b|\?|[+^]|\sand\s(?:a|one)\s(?:half|third|quarter)\b"
    r"|^\s?(?:half|halves|thirds?|quarters?)\b|\btimes\s(?:as|the|that|its|his|her|larger|more|bigger)\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"\b(?:more|less|fewer|greater|larger|smaller|higher|lower)\s(?:[a-z]{1,12}\s)?than\b", re.IGNORECASE)
_ALSO = re.compile(rf"(?:\b(?:and|or|but)|,)[\s*_]{{1,3}}(?:it\sis\s)?{VALUE}")
_BESIDE = re.compile(
    rf"\b(?:in|at|after|per|within|during|on|every|from)\s(?:the\s)?(?:(?:first|last|next)\s)?{VALUE}", re.IGNORECASE
)
_THAN = re.compile(rf"\b(?:than|compared\s(?:to|with)|instead\sof)\s(?:the\s)?{VALUE}", re.IGNORECASE)
_ASIDE = re.compile(
    rf"\b(?:in|at|after|per|within|during|on|every|from|over|out\sof|to\s(?:[a-z]{{1,12}}\s){{1,4}})\s?(?:the\s)?"
    rf"(?:(?:first|last|next)\s)?{VALUE}",
    re.IGNORECASE,
)
_MINUS = re.compile(r"^(?:minus|negative)\s", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<![\w.,$-])([0-9]{1,9})(?:st|nd|rd|th)\b")
_OFFERED = re.compile(rf"\b(?:either|maybe|perhaps)\b|{VALUE}[^{VALUE}.;]{{0,24}}\bor[\s*_]{{1,3}}{VALUE}", re.IGNORECASE)
_RANGE = re.compile(rf"\bbetween\b|{VALUE}[^{VALUE}.;]{{0,24}}\b(?<!compared )to[\s*_]{{1,3}}{VALUE}", re.IGNORECASE)
_BOTH = re.compile(rf"{VALUE}[^{VALUE},;.]{{0,24}}\band[\s*_]{{1,3}}{VALUE}$")
_BOLD = re.compile(rf"\*\*[^*{VALUE}]{{0,40}}{VALUE}[^*{VALUE}]{{0,40}}\*\*")
_RESULT = re.compile(
    r"(?:=|\\approx|≈)\s{0,3}(?:\\?\$\s?|\\text\{\s?)?(-?(?:\\[dt]?frac\{[0-9]{1,9}\}\{[0-9]{1,9}\}|[0-9][0-9,]*(?:\.[0-9]+)?))(?![0-9])"
    r"(?!\s?(?:[-+*×÷^(!_]|/\s?[0-9(\\]|\\(?:times|cdot|div|frac|sqrt|pi)|[a-z]\b))"
)
_FOR = re.compile(r"\bto\s(?!the\b|an?\b|be\b)[a-z]{3,}\b")
_ABOUT = re.compile(rf"\bor\s(?:approximately|about|roughly|around|nearly)[\s*_]{{1,3}}{VALUE}", re.IGNORECASE)
_UNTIL = re.compile(rf"[,;:()]|{VALUE}|\b(?:but|so)\b")


def claim(reply: str, last: bool = False) -> str | None:
    """What the last sentence with a value says; "" if it says nothing definite; None if the text has no value or cannot be read.

    last: of several values, none of which is said to be the answer, the last counts, whatever the text computes before it.
    """
    context, text = _tail(reply)
    values = values_of(text)
    masked = masked_of(text, values)
    if "\\" in masked:
        after = _AFTER_LATEX.match(text)
        return claim(text[after.end() :], last) if after else None
    if not values:
        return _ordinal(text)
    start, stop = _last_sentence(masked)
    sentence, own = masked[start:stop], values[masked.count(VALUE, 0, start) :]
    before = context[: len(context) - len(text) + own[0].start]
    if sentence.rstrip().endswith("?") or guesses(sentence, before[-60:]) or retracted(text[values[-1].end :]):
        return ""
    if found := _said(text, sentence, own):
        return _told(before, text, sentence, own, found)
    # a name such as $ABC$ is no value where another one is
    meant = [value for value in own if not (value.formula and is_name(text, value))] or own
    if last or len(meant) == 1 or len({text[value.start : value.end] for value in meant}) == 1:
        return _stated(text, meant[-1:])
    chosen = _of_several(before, text, sentence, own, meant)
    return _stated(text, [chosen]) if chosen else ""


def _last_sentence(masked: str) -> tuple[int, int]:
    """Where the last sentence with a value begins and ends."""
    last = masked.rindex(VALUE)
    end = _END.search(masked, last)
    return sentence_start(masked, last), end.end() if end else len(masked)


def _told(before: str, text: str, sentence: str, own: list[Value], found: re.Match[str]) -> str | None:
    """What the sentence says that something is, unless it goes on to change or compare it and no equation before it confirms it."""
    start, stop = found.span("values")
    first = sentence.count(VALUE, 0, start)
    rest = _rest(sentence, stop)
    if _CHANGED.search(rest):
        return ""
    # 24 - 16 = 8 more than before states 8, while to be 8 more than before is to be more than 8
    compared = found.group()[0] != "=" and _COMPARED.search(rest)
    if compared or _goes_on(text, sentence, own, stop):
        computed = None if _OFFERED.search(sentence) else _computed(before, text, own)
        return _stated(text, [computed]) if computed else ""
    return _stated(text, own[first : first + sentence.count(VALUE, start, stop)])


def _ordinal(text: str) -> str | None:
    """The last ordinal of a text without other values: he is on the 18th floor."""
    found = _ORDINAL.findall(text)
    return found[-1] if found and not text.rstrip().endswith("?") else None


def _of_several(before: str, text: str, sentence: str, own: list[Value], meant: list[Value]) -> Value | None:
    """The one of several values that a sentence is about; None where it offers several, as in "3 or 4" and "3 and 4"."""
    if _OFFERED.search(sentence):
        return None
    bold = _BOLD.findall(sentence)
    if len(bold) == 1:
        return own[sentence.count(VALUE, 0, sentence.index(bold[0]))]
    before_each = {value: _until(sentence, own.index(value)) for value in meant}
    meant = [value for value in meant if not _joined(_THAN, before_each[value])] or meant
    if computed := _computed(before, text, meant):
        return computed
    place = sentence.rindex(VALUE) + 1
    if any(pattern.search(sentence) for pattern in (_RANGE, _COMPARED)) or _BOTH.search(sentence, max(0, place - 40), place):
        return None
    # "in one week", "after 5 days" and "to fill 16 pools" are where, when and what for, not what
    main = [value for value in meant if not _joined(_ASIDE, before_each[value])]
    return (main or meant)[-1]


def _until(sentence: str, index: int) -> str:
    """The sentence up to its value of this index, that value included."""
    place = -1
    for _ in range(index + 1):
        place = sentence.index(VALUE, place + 1)
    return sentence[: place + 1]


def _computed(before: str, text: str, own: list[Value]) -> Value | None:
    """The one of the values that is the result of the last equation before them."""
    result, at = None, len(before)
    while result is None and (at := max(before.rfind(sign, 0, at) for sign in ("=", "\\approx", "≈"))) >= 0:
        result = _RESULT.match(before, at)
    if result is None:
        return None
    wanted = number(result[1].rstrip(","))
    return next((value for value in own if wanted is not None and _number_of(text, value) == wanted), None)


def _number_of(text: str, value: Value) -> Fraction | None:
    stated = text[value.start : value.end]
    return number(undelimited(stated).rpartition("=")[2] if value.formula else stated)


def _tail(text: str) -> tuple[str, str]:
    """The end of a reply, and of it what begins at the line of its last digit, unless that line is part of a formula."""
    text = text.strip()
    if len(text) > TAIL:
        text = text[-TAIL:]
        text = text[text.find("\n") + 1 :]
    if "\\" in text or "{" in text:
        text = text.replace("{,}", ",").replace("\\$", "$").replace("\\%", "%")
    text = text if text.isascii() else text.replace("−", "-")
    last = TO_LAST_DIGIT.match(text)
    start = text.rfind("\n", 0, last.end()) + 1 if last else 0
    before, line = text[:start], ungrouped(text[start:])
    text = before + line
    return text, line if _closed(line) and _closed(before) and before.count("$$") % 2 == 0 else text


def _closed(text: str) -> bool:
    """Whether each formula that opens in the text closes in it."""
    if "$" in text and text.count("$") % 2:
        return False
    return "\\" not in text or (text.count("\\[") == text.count("\\]") and text.count("\\(") == text.count("\\)"))


def _said(text: str, sentence: str, own: list[Value]) -> re.Match[str] | None:
    """Where the sentence says what something is: the last such place in a main clause, or the end of a computation."""
    found: re.Match[str] | None = None
    for match in _SAID.finditer(sentence):
        value = own[sentence.count(VALUE, 0, match.start("values"))]
        if value.formula and is_name(text, value):
            continue
        between = sentence[found.end() : match.start()] if found else ""
        computed = match.group()[0] == "=" and _COMPUTED.search(sentence, max(0, match.start() - 40), match.start())
        if computed or not _SUBORDINATE.search(between) or _CONCLUDES.search(between):
            found = match
    if not found:
        turned = (match for match in _SAID_OF.finditer(sentence))
        found = next((m for m in turned if not is_name(text, own[sentence.count(VALUE, 0, m.start())])), None)
    return found


def _rest(sentence: str, start: int) -> str:
    """The rest of the clause, up to the next comma, value or subordinate clause."""
    ends = [match.start() for pattern in (_UNTIL, _SUBORDINATE) if (match := pattern.search(sentence, start))]
    return sentence[start : min(ends, default=len(sentence))]


def _goes_on(text: str, sentence: str, own: list[Value], start: int) -> bool:
    """Whether another value follows that belongs to the answer, or is one too: 5 dollars and 3 cents; 7 if n is even and 8 if not.

    Equations such as $k = 5$, values in a subordinate clause, after "in", "at", ... or "to fill", and approximations do not.
    """
    place = start
    while (place := sentence.find(VALUE, place)) >= 0:
        value = own[sentence.count(VALUE, 0, place)]
        before = sentence[start : place + 1]
        mentioned = is_name(text, value) or (value.formula and "=" in text[value.start : value.end])
        aside = _SUBORDINATE.search(before) or _FOR.search(before) or _joined(_BESIDE, before)
        if not mentioned and not _joined(_ABOUT, before) and (_joined(_ALSO, before) or not aside):
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
        if value.formula and qualified(text, value.start):
            return ""
        if not value.formula and not unattached(text, value.start, value.end):
            return None
    start, end = chosen[0].start, chosen[-1].end
    percent = next((sign for sign in ("%", " %", " percent", " pct", " per cent") if text.startswith(sign, end)), "")
    formula = text[start:end]
    return _MINUS.sub("-", undelimited(formula) if len(chosen) == 1 and chosen[0].formula else formula) + percent
