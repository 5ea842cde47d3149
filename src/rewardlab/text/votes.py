"""Majority votes: a reply's answer, and the most frequent one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .answers import final_answer
from .numbers import number

_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf)\{([^{}]{0,200})\}")
_CHOICE = re.compile(r"\(([a-z])\)")


def answer_of(reply: str) -> Any:
    """The final answer, as a number if it is one; None if there is none."""
    answer = final_answer(reply)
    if answer is None:
        return None
    # so that "0.50" and "1/2" are one answer
    value = number(answer)
    return _spelled(answer) if value is None else value


def _spelled(answer: str) -> str:
    r"""An answer in words or signs, so that "Paris" and "paris." are one, and so are "B", "(B)" and "$\text{B}$"."""
    bare = _WORDS.sub(r"\1", answer).lower().strip(" \t\r\n$.;,*")
    choice = _CHOICE.fullmatch(bare)
    return choice[1] if choice else bare or answer.strip().lower()


def majority_of(answers: Iterable[Any]) -> Any:
    """The most frequent answer, of equally frequent ones the first; None, which is no answer, does not vote."""
    votes = Counter(answer for answer in answers if answer is not None)
    # of answers with equally many votes, the one that was counted first
    return votes.most_common(1)[0][0] if votes else None
