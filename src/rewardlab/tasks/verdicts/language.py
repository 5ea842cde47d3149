"""The prompt that asks a verifier to judge a solution step by step, and how its judgement is parsed. Both are text, so that models
with different tokenizers can work together. A verdict comes after what the step should have been.

    Start with 7. Add 5.            1: 7+5=12, wrong
    1: 7+5=13               ->      2: Answer: 13, right
    2: Answer: 13                   Final: wrong
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardlab.core import Problem, Trajectory, ask

WORDS = {True: "right", False: "wrong"}
_LINE = re.compile(r"(\d{1,3}): (?:[^\n]{0,40}, )?(right|wrong)")


class Judgement(NamedTuple):
    """steps: a verdict for each step, in order.  final: of the answer; None where none was given."""

    steps: list[bool]
    final: bool | None


def to_judge(question: str, steps: Sequence[str], right: bool | None = None, **meta: Any) -> Problem:
    """The problem of judging a solution to `question`; `right`, whether its answer is, is the gold final verdict."""
    lines = [f"{i}: {step}" for i, step in enumerate(steps, 1)]
    return ask("\n".join([question, *lines]), None if right is None else WORDS[right], count=len(steps), **meta)


def begun(verifier: Any, problems: Sequence[Problem], max_new: int) -> list[Trajectory | None]:
    """The problems as `verifier` reads them; None where `max_new` tokens more would not fit its context."""
    rows = verifier.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [row if len(row) + max_new <= verifier.context else None for row in rows]


def written(steps: Sequence[bool], final: bool, should: Sequence[str]) -> str:
    """A judgement as a verifier writes it; `should`: what each step should have been."""
    lines = [f"{i}: {step}, {WORDS[ok]}" for i, (step, ok) in enumerate(zip(should, steps, strict=True), 1)]
    return "\n".join([*lines, f"Final: {WORDS[final]}"])


def read(reply: str) -> Judgement:
    """The judgement in a reply, as far as it parses: steps are numbered from 1 without gaps, the final verdict comes last."""
    lines = [line.strip() for line in reply.strip().splitlines()]
    final = lines[-1].removeprefix("Final: ") if lines and lines[-1].startswith("Final: ") else None
    steps = []
    for i, line in enumerate(lines[: len(lines) - (final is not None)], 1):
        match = _LINE.fullmatch(line)
        if not match or int(match[1]) != i:
            # a gap in the numbers: which step a verdict is about is unknown
            return Judgement([], None)
        steps.append(match[2] == "right")
    return Judgement(steps, {"right": True, "wrong": False}.get(final or ""))


def first_error(steps: Sequence[bool]) -> int | None:
    """Index of the first step that is wrong; None where all are right."""
    return next((i for i, ok in enumerate(steps) if not ok), None)


def step_f1(gold: Sequence[Sequence[bool]], judged: Sequence[Sequence[bool]]) -> float:
    """How well first errors are located: the harmonic mean of two shares, of error-free solutions judged error-free, and of flawed
    solutions whose first error is located. A judgement that leaves a step out counts as wrong in both.

    Zheng et al. 2024, arXiv:2412.06559
    """
    located: dict[bool, list[bool]] = {True: [], False: []}
    for gold_steps, verdicts in zip(gold, judged, strict=True):
        position = first_error(gold_steps)
        located[position is None].append(len(verdicts) == len(gold_steps) and first_error(verdicts) == position)
    clean, flawed = (sum(located[k]) / max(1, len(located[k])) for k in (True, False))
    return 2 * clean * flawed / (clean + flawed) if clean + flawed else 0.0
