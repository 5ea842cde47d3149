"""The verifier of expressions made of given numbers, as in Countdown."""

from __future__ import annotations

from typing import Any

from rewardlab.text.answers import after_answer, after_thinking, boxed
from rewardlab.text.equations import evaluate
from rewardlab.text.replies import data

from .contract import Verdict, no_verdict, right, verifier, wrong


@verifier
def equation(response: str, answer: Any) -> Verdict:
    """Right if the stated expression of + - * / uses each of the numbers once and comes to the target.

    answer: {"numbers": [3, 5, 7], "target": 9}, as data or JSON text, as in countdown. It is evaluated, never run as code.
    """
    match data(answer):
        case {"numbers": list(numbers), "target": int() as target} if all(type(n) is int for n in numbers):
            pass
        case _:
            return no_verdict('the gold answer is not {"numbers": whole numbers, "target": a whole number}')
    text = after_thinking(response)
    stated = boxed(text) or after_answer(text)
    if stated is None:
        return wrong("no answer found")
    try:
        value, used = evaluate(stated)
    except ValueError as fault:
        return wrong(str(fault), stated)
    # as multisets: a number that is given twice must be used twice
    if sorted(used) != sorted(numbers):
        return wrong(f"uses {sorted(used)}, not each of {sorted(numbers)} once", stated)
    return right(stated) if value == target else wrong(f"comes to {value}, not {target}", stated)
