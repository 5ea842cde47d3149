"""Prompts and replies of a refiner of episodes: accept, or cut before a given reply."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewardlab.core import Problem, ask

from .answers import after_thinking
from .filled import filled

QUESTION = "{question}\n{turns}\nAccept, or Cut: the first turn that is wrong?"
CUT = re.compile(
    r"\bcut\W{0,4}(?:(?:at|before|turn|step)\W{1,3}){0,3}([1-9][0-9]{0,3})\b|(?:^|[.!?:])\W{0,4}(accept)\W{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
REFINES = "refines"
"""The column of a refiner's problem that holds the key of the problem whose episode it refines."""


def to_refine(problem: Problem, replies: Sequence[str], messages: Sequence[str], question: str = QUESTION) -> Problem:
    """The problem of accepting an episode or cutting it. It has no answer: what it leads to tells what it was worth.

    messages: what answered the replies, one fewer where nothing answered the last.
    """
    answers = [f"\n-> {text}" for text in messages] + [""] * (len(replies) - len(messages))
    turns = "\n".join(f"{i}: {reply}{said}" for i, (reply, said) in enumerate(zip(replies, answers, strict=True), 1))
    return ask(filled(question, question=problem.question, turns=turns), None, **{REFINES: problem.key})


def cut_of(said: str, replies: int) -> int | None:
    """The number of the reply before which a refiner cuts, by the last "Cut: k" behind its thinking; None where it accepts after
    that, or there is no such reply.
    """
    found = [number for number, _ in CUT.findall(after_thinking(said))]
    return int(found[-1]) if found and found[-1] and int(found[-1]) <= replies else None
