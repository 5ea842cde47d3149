"""The prompt that asks a verifier to judge a solution step by step, and how its judgement is parsed. Both are text, so that models
with different tokenizers can work together. A line for each step: what it should have been, what it comes to, whether they agree.

    Start with 7. Add 5.            7+5=12 13 -
    1: 7+5=13               ->      Answer: 13 13 +
    2: Answer: 13                   Final: -

A small model learns to compare two numbers that stand side by side, and hardly two that are lines apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardlab.core import Problem, Trajectory, ask

TOLD = (
    "Judge the numbered steps of a solution to the problem below. Write one short line for each step that ends in + if the step is "
    "right, and in - if it is wrong. End with the line 'Final: +' if the solution's answer is right, or 'Final: -' if it is wrong."
)
"""What a language model that was not taught to judge is told; small models that were need no words."""
WORDS = {True: "right", False: "wrong"}
SIGNS = {True: "+", False: "-"}
_LINE = re.compile(r"[^\n]{0,60} ([-+])")
_NUMBERED = re.compile(r"(\d{1,3}): (?:[^\n]{0,40}, )?(right|wrong)")
"""How judgements were written once, which verifiers of older runs still do."""


class Judgement(NamedTuple):
    """steps: a verdict for each step, in order.  final: of the answer; None where none was given."""

    steps: list[bool]
    final: bool | None


def to_judge(question: str, steps: Sequence[str], right: bool | None = None, told: str = "", **meta: Any) -> Problem:
    """The problem of judging a solution to `question`; `right`, whether its answer is, is the gold final verdict.  told: how to."""
    lines = [f"{i}: {step}" for i, step in enumerate(steps, 1)]
    return ask(
        "\n".join([*([told, ""] if told else []), question, *lines]),
        None if right is None else WORDS[right],
        count=len(steps),
        **meta,
    )


def begun(verifier: Any, problems: Sequence[Problem], max_new: int) -> list[Trajectory | None]:
    """The problems as `verifier` reads them; None where `max_new` tokens more would not fit its context."""
    rows = verifier.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [row if len(row) + max_new <= verifier.context else None for row in rows]


def written(lines: Sequence[str], steps: Sequence[bool], final: bool, should: Sequence[str]) -> str:
    """A judgement as a verifier writes it. lines: the solution's; should: what each should have been; steps: whether it is that."""
    judged = [f"{want} {_result(line)} {SIGNS[ok]}" for want, line, ok in zip(should, lines, steps, strict=True)]
    return "\n".join([*judged, f"Final: {SIGNS[final]}"])


def _result(line: str) -> str:
    """What a step comes to: the text after its last = or colon."""
    return re.split("[=:]", line)[-1].strip() or "?"


def read(reply: str) -> Judgement:
    """The judgement in a reply, as far as it parses: a line for each step, the final verdict last."""
    lines = [line.strip() for line in reply.strip().splitlines()]
    final = lines[-1].removeprefix("Final: ") if lines and lines[-1].startswith("Final: ") else None
    steps = []
    for i, line in enumerate(lines[: len(lines) - (final is not None)], 1):
        numbered = _NUMBERED.fullmatch(line)
        match = numbered or _LINE.fullmatch(line)
        if not match or (numbered and int(numbered[1]) != i):
            # a line that is no verdict, or a gap in the numbers: which step a verdict is about is unknown
            return Judgement([], None)
        steps.append(match[match.lastindex or 0] in ("right", "+"))
    return Judgement(steps, {"right": True, "wrong": False, "+": True, "-": False}.get(final or ""))
