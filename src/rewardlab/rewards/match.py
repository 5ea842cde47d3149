"""Verifiers that compare a reply with the gold answer.

Whatever the reply causes is 0 with the reason; a gold answer that cannot be read is our failure, and gives no verdict.
"""

from __future__ import annotations

from fractions import Fraction

from rewardlab.core import Score, Trajectory, reward
from rewardlab.kit.extraction import (
    after_answer,
    boxed,
    last_number,
    number,
    one_number,
    tidy,
)
from rewardlab.kit.extraction import (
    final_answer as stated_answer,
)


@reward
def final_number(trajectory: Trajectory) -> Score:
    r"""1 where the number that the reply ends on equals the gold number, exactly.

    Read from the last \boxed, else after "answer", else the last number. A stated answer must come to one number.
    """
    gold = _gold_number(trajectory.problem.answer)
    if gold is None:
        return Score(None, why=f"the gold answer {trajectory.problem.answer!r} is not a number")
    said = boxed(trajectory.reply) or after_answer(trajectory.reply) or last_number(trajectory.reply)
    value = one_number(said) if said else None
    if value is None:
        return Score(0.0, why=f"no single number in {said[:60]!r}" if said else "no answer found")
    return _verdict(value == gold, str(value), str(gold))


@reward
def final_answer(trajectory: Trajectory) -> Score:
    """1 where the final answer equals the gold answer: as numbers if both are numbers, else as tidied text."""
    gold = trajectory.problem.answer
    if gold is None or not str(gold).strip():
        return Score(None, why="the problem has no gold answer")
    said = stated_answer(trajectory.reply)
    if said is None:
        return Score(0.0, why="no answer found")
    want, value = _gold_number(gold), number(said)
    equal = value == want if value is not None and want is not None else tidy(said) == tidy(str(gold))
    return _verdict(equal, said, str(gold))


@reward
def exact_match(trajectory: Trajectory) -> Score:
    """1 where the whole reply is the gold answer, but for spaces around it."""
    gold = trajectory.problem.answer
    if gold is None or not str(gold).strip():
        return Score(None, why="the problem has no gold answer")
    return _verdict(trajectory.reply.strip() == str(gold).strip(), trajectory.reply.strip(), str(gold))


def _gold_number(gold: object) -> Fraction | None:
    """The gold number; a worked solution in the manner of GSM8K may stand before its "####"."""
    return None if gold is None else number(str(gold).rpartition("####")[2])


def _verdict(equal: bool, said: str, gold: str) -> Score:
    return Score(1.0, why="right") if equal else Score(0.0, why=f"said {said[:60]!r}, the answer is {gold[:60]!r}")
