"""A small verifier for numbers, choices and short texts that an audit finds no fault with."""

from __future__ import annotations

import re
from fractions import Fraction

MARK = re.compile(r"answer(?: is|:)|####|\\boxed\{", re.IGNORECASE)
NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40}|/[0-9]{1,40})?")


def sound(completion: str, answer: str) -> float:
    """1 where what is stated last, behind a mark and outside of the thinking, is the answer and nothing but the answer."""
    said = _stated(completion)
    return float(said is not None and _read(said) == _read(str(answer)))


def _stated(completion: str) -> str | None:
    if "<think>" in completion and "</think>" not in completion:
        return None
    completion = completion.rpartition("</think>")[2]
    marks = list(MARK.finditer(completion))
    if not marks:
        return None
    line = completion[marks[-1].end() :].strip().split("\n")[0]
    if marks[-1].group() == r"\boxed{":
        return line.partition("}")[0]
    return line


def _read(text: str) -> Fraction | str:
    """An answer without what does not matter: case, a full stop, emphasis, brackets around a letter, separators."""
    text = text[:200].strip().rstrip(".").strip("* $").replace("−", "-").lower()
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3})", "", text)
    if NUMBER.fullmatch(plain) and not plain.endswith("/0"):
        return Fraction(plain)
    return text[1:-1] if re.fullmatch(r"\([a-z]\)", text) else text
