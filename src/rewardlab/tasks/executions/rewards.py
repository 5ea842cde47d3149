"""The verifier of answers about a run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.verifiers.contract import Verdict, differs, no_verdict, right, verifier, wrong

LONGEST = 1000
"""Characters of a line that is read as a value."""


@verifier
def trace_answers(response: str, answer: Any) -> Verdict:
    """Whether a reply says what a call returns, on the first line of its last <answer>...</answer>.

    answer = {"output": "18", "questions": [{"kind": "next" or "state", "answers": ["y = y + 1", ...]}, ...]}, any answer is
    right. parts: `steps`, the share of the questions answered rightly on the lines that follow, 0 where there are not as many lines
    as questions, 1 where none was asked. Values are compared as Python's literals, types and lines as text.
    """
    questions = answer.get("questions") if isinstance(answer, Mapping) else None
    if not isinstance(questions, Sequence) or not isinstance(answer.get("output"), str) or not all(map(_usable, questions)):
        return no_verdict('the gold answer is not {"output": text, "questions": [{"kind", "answers"}, ...]}')
    _, opened, after = response.rpartition("<answer>")
    inside, closed, _ = after.partition("</answer>")
    lines = [line.strip() for line in inside.strip().splitlines()]
    if not opened or not closed or not lines:
        return wrong("no <answer>...</answer>", parts={"steps": 0.0})
    told = lines[1:] if len(lines) == 1 + len(questions) else []
    hits = sum(_answers(said, question) for said, question in zip(told, questions, strict=False))
    parts = {"steps": hits / len(questions) if questions else 1.0}
    if _value(lines[0]) != _value(answer["output"]):
        return wrong(differs(lines[0], answer["output"]), lines[0], parts=parts)
    return right(lines[0], f"{hits} of {len(questions)} questions", parts=parts)


def _usable(question: Any) -> bool:
    return isinstance(question, Mapping) and question.get("kind") in ("next", "state") and isinstance(question.get("answers"), list)


def _answers(said: str, question: Mapping[str, Any]) -> bool:
    golds = [str(gold).strip() for gold in question["answers"]]
    if question["kind"] == "next":
        return said in golds
    return any(_state(said) == _state(gold) for gold in golds)


def _state(text: str) -> tuple[Any, str]:
    """Value and type; the last ";" parts them, since a text may have others."""
    value, _, kind = text.rpartition(";")
    return _value(value), kind.strip()


def _value(text: str) -> Any:
    """The value with its type's name, so that 1 is neither True nor 1.0; a text that is no literal as it is."""
    text = text.strip()
    if len(text) > LONGEST:
        return "text", text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return "text", text
    return type(value).__name__, value
