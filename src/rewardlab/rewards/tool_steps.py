"""Steps with arithmetic that a tool can check: whether their numerical equations hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from rewardlab.core import Score, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import step_texts, unequal
from rewardlab.text.equations import evaluate


@reward(steps=True)
def tool_steps(
    trajectory: Trajectory, *, splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline"
) -> list[tuple[int, float]] | Score:
    """1 at the end of each step whose numerical equations all hold, 0 where one does not; no label for a step without any.

    See `equations`. A step may be right by itself and go on from a wrong number: only what it states is checked. No verdict on a
    reply without any equation.
    """
    if not trajectory.steps:
        raise RewardlabError(f"tool_steps needs the positions where steps end: set splitter={splitter!r} in the rollout")
    lines = step_texts(trajectory, splitter)
    if len(lines) != len(trajectory.steps):
        return unequal(lines, trajectory)
    checked = [(at, list(equations(line))) for at, line in zip(trajectory.steps, lines, strict=True)]
    found = [(at, float(all(true for _, true in claims))) for at, claims in checked if claims]
    return found or Score(None, why="no step states an equation between numbers")


def equations(text: str) -> Iterator[tuple[str, bool]]:
    """The equations between numbers that a text states, and whether each is true: "3*4=12", "5 + 3.5 = 8.5", "20% * 50 = 10".

    Both sides consist of numbers with + - * / and brackets, and at least one of them has an operation. Chains such as 2*3=6=5+1
    are two equations. What is part of something longer (x + 3 = 5, 2^3 = 8, 3 = 2 sqrt(2)) is left alone rather than misread. The
    values are compared exactly; if a side is a decimal number, or the sign is ≈, to the digits that stand there, rounded.
    """
    # a calculator's annotation, <<5+8=13>>13, states its equation before the text repeats the result
    for part in [*_CALCULATED.findall(text), *_CALCULATED.sub("", text).splitlines()]:
        pieces = _EQUALS.split(_ENUMERATED.sub("", _plain(part)))
        for (left, sign), (right, _) in pairwise(zip(pieces[::2], [*pieces[1::2], ""], strict=True)):
            a, b = _before(left), _after(right)
            if a and b and any(_OPERATION.search(side) for side in (a, b)):
                try:
                    yield f"{a}={b}", _equal(a, b, sign == "≈")
                except ValueError:
                    # not an expression after all, such as two numbers beside each other
                    continue


_CALCULATED = re.compile(r"<<([^<>\n]{1,100})>>")
_ENUMERATED = re.compile(r"^\s{0,9}(?:[-*•]\s|(?:\(?[0-9]{1,3}[.):])\s)")
_EQUALS = re.compile(r"([=≈])")
_OPERATION = re.compile(r"(?<=[0-9)% ])[-+*/]")
_PLAIN = (
    (re.compile(r"[<>!:≤≥≠~]=|=>|[→⇒]|\\(?:neq?|leq?|geq?|Rightarrow|to)\b"), ";"),
    (re.compile(r"=="), "="),
    (re.compile(r"\\[()\[\]]"), " "),
    (re.compile(r"\\approx\b"), "≈"),
    (re.compile(r"\\[dt]?frac\{([0-9.]{1,20})\}\{([0-9.]{1,20})\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:times|cdot)\b|[×·]"), "*"),
    (re.compile(r"\\div\b|÷"), "/"),
    (re.compile(r"−"), "-"),
    (re.compile(r"\\boxed\{([^{}]{1,40})\}|\\text\{([^{}]{0,40})\}"), r"\1\2"),
    (re.compile(r"\\left|\\right|\\[$!]|\\[,;](?![0-9])|\$|\{,\}"), ""),
    (re.compile(r"\\%"), "%"),
    # bold, but not a power
    (re.compile(r"(?<![0-9)])\*\*|\*\*(?![0-9(])"), ""),
    (re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))"), ""),
    (re.compile(r"(?<=[0-9])\s{0,3}x\s{0,3}(?=[0-9])"), "*"),
)
_LAST = re.compile(r"[0-9.+\-*/()% ]*$")
_FIRST = re.compile(r"[0-9.+\-*/()% ]*")
_SENTENCE = re.compile(r"[.](?:\s|$)")
_GOES_ON = re.compile(
    r"(?:[A-Za-z]|\s?[\^_\\{}\[\]|√!π°]|\s{0,3}(?:[A-Za-z]\b|(?:sqrt|sin|cos|tan|log|ln|pi|mod|times|plus|minus|multiplied|divided|"
    r"over|squared|cubed|choose|hundred|thousand|million|billion|dozen|percent|remainder|or)\b))",
    re.IGNORECASE,
)
_BEGAN = re.compile(
    r"(?:[A-Za-z0-9^_\\{}\[\]|√!π]|\b(?:[A-Za-z]|sqrt|sin|cos|tan|log|ln|pi|mod|times|plus|minus|by|of|from|over|than)\s{1,3})$",
    re.IGNORECASE,
)


def _plain(text: str) -> str:
    """The text in the signs that are read here."""
    for pattern, by in _PLAIN:
        text = pattern.sub(by, text)
    return text


def _before(text: str) -> str | None:
    """The expression at the end of what stands before an equals sign; None if there is none, or it is part of a longer one."""
    found = _LAST.search(text)
    start = found.start() if found else len(text)
    said = text[start:]
    # a sentence that ends within
    if (ends := [match.end() for match in _SENTENCE.finditer(said)]) and said[ends[-1] :].strip():
        start, said = start + ends[-1], said[ends[-1] :]
    # from the first sign on, so that the text before it ends on a space where one is between
    start += len(said) - len(said.lstrip())
    expression = _balanced(said)
    # a bracket that closes here was opened further left, in what is not read
    if not expression or expression[0] in "+*/%)" or said.count(")") > said.count("("):
        return None
    if before := text[:start].rstrip(" "):
        # a bare number after words is the end of something said in words; a sign there joins it to what is before
        bare = not _OPERATION.search(expression) and before[-1] not in ";:,("
        if bare or expression[0] == "-" or _BEGAN.search(text[:start]):
            return None
    return expression


def _after(text: str) -> str | None:
    """The expression at the beginning of what stands after an equals sign."""
    found = _FIRST.match(text)
    end = found.end() if found else 0
    if match := _SENTENCE.search(text, 0, end):
        return _balanced(text[: match.start()]) or None
    expression = _balanced(text[:end].rstrip(". "))
    goes_on = _GOES_ON.match(text, len(text[:end].rstrip()))
    opened = text[:end].count("(") > text[:end].count(")")
    return None if not expression or goes_on or opened or expression[-1] in "+-*/" else expression


def _balanced(text: str) -> str:
    """The expression without brackets that opened or close around it."""
    text = text.strip()
    while text.count("(") != text.count(")"):
        opened = text.count("(") > text.count(")")
        if not (text.startswith("(") if opened else text.endswith(")")):
            break
        text = (text[1:] if opened else text[:-1]).strip()
    return text


def _equal(a: str, b: str, about: bool) -> bool:
    x, y = _value(a), _value(b)
    # "0.25*100 = 25%" means the number of per cent
    if x == y or (b.endswith("%") and x == _value(b[:-1])):
        return True
    return any(_rounds(exact, value, side, about) for exact, value, side in ((x, y, b), (y, x, a)))


def _rounds(exact: Fraction, value: Fraction, side: str, about: bool) -> bool:
    """Whether a side is one number, and the exact value rounds to it."""
    number = re.fullmatch(r"-?[0-9]*(?:\.([0-9]*))?(%?)", side)
    if not number or not (number[1] or about):
        return False
    digits = len(number[1] or "") + (2 if number[2] else 0)
    return abs(exact - value) <= Fraction(1, 2 * 10**digits)


def _value(expression: str) -> Fraction:
    """The exact value. Raises ValueError for what is no expression."""
    whole = re.sub(r"([0-9.]*[0-9])%", r"(\1/100)", expression)
    whole = re.sub(r"([0-9]*)\.([0-9]+)", lambda m: f"({int(m[1] + m[2])}/{10 ** len(m[2])})", whole)
    # a sign of its own: the parser knows operations alone
    whole = re.sub(r"([-+*/]\s*)-\s*([0-9]+)", r"\1(0-\2)", re.sub(r"(^|\()\s*-", r"\g<1>0-", whole))
    # 007 is no whole number to the parser
    return evaluate(re.sub(r"\b0+(?=[0-9])", "", whole))[0]
