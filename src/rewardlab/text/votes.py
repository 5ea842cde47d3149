"""What a reply votes for, and the answer that most replies vote for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .answers import final_answer
from .numbers import number


def answer_of(reply: str) -> Any:
    """The final answer, as a number if it is one; None if there is none."""
    answer = final_answer(reply)
    if answer is None:
        return None
    value = number(answer)
    # so that "0.50" and "1/2" are one answer, and "Paris" and "paris"
    return answer.strip().lower() if value is None else value


def majority_of(answers: Iterable[Any]) -> Any:
    """The most frequent answer, of equally frequent ones the first; None, which is no answer, does not vote."""
    votes = Counter(answer for answer in answers if answer is not None)
    # of answers with equally many votes, the one that was counted first
    return votes.most_common(1)[0][0] if votes else None
