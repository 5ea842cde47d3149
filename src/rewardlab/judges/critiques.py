"""A critic of drafts: how it is asked, how its critique is read, and how the critique is shown to whoever revises the draft.

After Xie et al. 2025, arXiv:2502.03492; HKUNLP/critic-rl ctrl/gen/prompt.py at aef3eb1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from rewardlab.clients.messages import MARK
from rewardlab.core import Message, Problem, Score
from rewardlab.judges.forms import asking, conversation, shown_in
from rewardlab.text.answers import after_thinking
from rewardlab.text.filled import filled

_SHOWN = "Problem:\n<problem>\n{question}\n</problem>\n\nAnswer:\n<answer>\n{attempt}\n</answer>\n\n"
_FORM = (
    "Write three parts, in this form:\n\nAnalysis:\n(what is right and what is wrong, and why)\n\n"
    "Improvement suggestions:\n(what to change)\n\nOverall judgment: Correct or Incorrect"
)
_TASK = "Analyse an answer to a problem, and give feedback by which it can be improved. Do not write a solution.\n\n"
ASK = _TASK + _SHOWN + _FORM
_WARNED = "A hint stands below. Let it guide your reasoning, but never mention it.\n\n"
HINTED = _TASK + _WARNED + _SHOWN + "Hint:\n<hint>\n{hint}\n</hint>\n\n" + _FORM
REVISE = "{critique}\n\nNow give your final answer, in the same form as before."
PARTS = ("Analysis:", "Improvement suggestions:", "Overall judgment:")
"""The headings of a critique, in their order; after the last stands the judgment."""
JUDGMENTS = {"correct": True, "right": True, "incorrect": False, "wrong": False}
FINE = "The answer is right. A short, positive response is best, without suggestions that are not needed."
AFRESH = "The answer is wrong throughout. It needs another approach, from the start."
DRAFT, QUESTION, TURNS = "draft", "question", "draft_prompt"
"""Columns of a question to a critic: the draft; the question that it answers, and all messages of its prompt."""


def judgment(critique: str, parts: tuple[str, ...] = PARTS) -> bool | None:
    """Whether a critique calls the draft right, by the word after its last heading; None where it lacks a part."""
    rest = after_thinking(critique)
    for i, heading in enumerate(parts):
        before, found, rest = rest.partition(heading)
        # before a heading stands the previous part
        if not found or (i and not before.strip()):
            return None
    return JUDGMENTS.get(rest.strip().casefold())


def hint_of(verdict: Score) -> str:
    """What a verdict on a draft tells who criticises it."""
    if verdict.value is not None and verdict.value >= 1:
        return FINE
    # of several tests none was passed
    if len(verdict.tests) > 1 and not any(verdict.tests):
        return AFRESH
    return f"The answer is wrong. It was checked: {verdict.why or 'it does not pass'}"


def criticised(problem: Problem, draft: str, ask: str = ASK, **further: str) -> Problem:
    """The problem as its critic reads it, who is told nothing of the system message; the columns keep prompt and draft."""
    asked = asking(problem, ask, question=conversation(problem), attempt=draft, **further)
    turns = [[m.role, m.text] for m in problem.prompt]
    return replace(asked, meta={**problem.meta, QUESTION: problem.question, TURNS: turns, DRAFT: draft})


def original(asked: Problem) -> Problem:
    """The problem of which a critic read a draft."""
    turns = [Message(role, text) for role, text in asked.meta[TURNS]]
    return replace(asked, prompt=_showing(turns, shown_in(asked)))


def _showing(turns: Sequence[Message], shown: Sequence[Any]) -> tuple[Message, ...]:
    """The messages with the pictures that the critic was shown, each as many as it has marks; without any the last of the user."""
    marks = [m.text.count(MARK) for m in turns]
    if sum(marks) != len(shown):
        last = max((i for i, m in enumerate(turns) if m.role == "user"), default=0)
        marks = [len(shown) if i == last else 0 for i in range(len(turns))]
    rest = iter(shown)
    return tuple(replace(m, images=tuple(islice(rest, n))) for m, n in zip(turns, marks, strict=True))


def to_revise(asked: Problem, critique: str, revise: str = REVISE) -> Problem:
    """The problem as the generator reads it after the critique, without its thinking. asked: as the critic read it.

    revise: the message that follows the draft, with {critique}; or, with {attempt} in it, the whole prompt.
    """
    first, draft = original(asked), str(asked.meta[DRAFT])
    text = filled(revise, question=first.question, attempt=draft, critique=after_thinking(critique).strip())
    if "{attempt}" in revise:
        return first.reworded(text)
    return replace(first, prompt=(*first.prompt, Message("assistant", draft), Message("user", text)))
