"""Answers with stated confidences.

    Answer: 36                      <answer>36</answer>
    Confidence: 0.7                 <confidence>0.7</confidence>

Reading never raises, whatever the text, and every pattern runs in linear time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.core import Group, Run, Score, Trajectory
from rewardlab.errors import RewardlabError

from .answers import after_thinking
from .numbers import number

# answers may be numbered: "Answer 2:", "<answer2>"
_MARK = re.compile(
    r"<(?P<tag>answer|confidence)[0-9]{0,2}>|\b(?P<word>answer|confidence)(?: [0-9]{1,2})?[*_]{0,3}[ ]?(?:is\b|:|=)[*_]{0,3}",
    re.IGNORECASE,
)
_CONFIDENCE = re.compile(r"([01]|[01]?\.[0-9]{1,10})|([0-9]{1,3}(?:\.[0-9]{1,10})?) ?%")


class Stated(NamedTuple):
    """An answer that a reply states.  confidence: the one stated for it, from 0 to 1; None if there is none that can be read."""

    answer: str
    confidence: float | None = None

    @property
    def key(self) -> Any:
        """Equal for answers that are the same number, or the same text in any case."""
        value = number(self.answer)
        return " ".join(self.answer.lower().split()) if value is None else value


Judged = list[tuple[Stated, bool]]
"""The different answers of a reply, each with whether it is right."""


def stated_answers(reply: str) -> list[Stated]:
    """The answers of a reply, in order, each with the confidence that follows it before the next one. Thinking is ignored."""
    text, found = after_thinking(reply), list[Stated]()
    marks = list(_MARK.finditer(text))
    for i, mark in enumerate(marks):
        kind = (mark["tag"] or mark["word"]).lower()
        content = _content(text[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(text)], bool(mark["tag"]))
        if kind == "answer" and content:
            found.append(Stated(content))
        elif kind == "confidence" and found:
            # a confidence that is stated again replaces the first
            found[-1] = found[-1]._replace(confidence=_confidence(content))
    return found


def stated_confidence(reply: str) -> float | None:
    """The confidence that a reply states last, from 0 to 1; None if there is none, or it cannot be read. Thinking is ignored."""
    text, last = after_thinking(reply), None
    for mark in _MARK.finditer(text):
        if (mark["tag"] or mark["word"]).lower() == "confidence":
            last = mark
    return None if last is None else _confidence(_content(text[last.end() :], bool(last["tag"])))


def judged_answers(groups: list[Group], run: Run) -> list[list[Judged | None]]:
    """The different answers that each reply lists, judged by the task's verifier; None where it gives no verdict on one of them.

    Of equal answers the first counts, with its confidence.
    """
    if run is None or run.verify is None:
        raise RewardlabError("to judge the answers of a reply takes the task's verifier, and this run has none: name a task")
    listed = [[list({x.key: x for x in reversed(stated_answers(t.reply))}.values())[::-1] for t in group] for group in groups]
    alone = [
        [_saying(t, x) for x in answers]
        for group, row in zip(groups, listed, strict=True)
        for t, answers in zip(group, row, strict=True)
    ]
    verdicts = iter(run.verify(alone, run))
    return [[_paired(answers, next(verdicts)) for answers in row] for row in listed]


def _saying(trajectory: Trajectory, stated: Stated) -> Trajectory:
    """The trajectory as if its last turn had stated this answer alone."""
    *before, last = trajectory.turns
    return replace(trajectory, turns=(*before, replace(last, text=f"Answer: {stated.answer}")))


def _paired(answers: list[Stated], verdicts: list[Score]) -> Judged | None:
    if any(v.value is None for v in verdicts):
        return None
    return [(x, v.value is not None and v.value >= 1.0) for x, v in zip(answers, verdicts, strict=True)]


def _content(text: str, tagged: bool) -> str:
    """What a mark is followed by: up to the closing tag, or to the end of the line."""
    text = text.partition("</")[0] if tagged else text.lstrip(" ").partition("\n")[0]
    # the bracket of "36 (confidence: 0.7)" stands before the next mark
    return text.strip(" \t\r\n*_").rstrip("(,; \t*_")


def _confidence(text: str) -> float | None:
    match = _CONFIDENCE.fullmatch(text.rstrip(".)"))
    if not match:
        return None
    value = float(match[1]) if match[1] else float(match[2]) / 100
    return value if 0 <= value <= 1 else None
