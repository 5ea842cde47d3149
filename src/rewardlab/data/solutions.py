"""Solutions in steps with labels, as annotators write and process reward models learn from.

A row of a file of them:

    {"prompt": "...", "steps": ["7+5=12", "12*2=25"], "labels": [1.0, 0.0], "right": false, "answer": "24"}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardlab.errors import RewardlabError

from .conversations import WHO, decoded, first_of, is_conversation, role_of, text_in

Row = dict[str, Any]
COLUMNS = ("prompt", "steps", "labels", "right", "answer")
"""The columns that mean something here; `meta` holds all others of a row."""


@dataclass(frozen=True)
class Solution:
    """A solution in steps.

    labels: one for each step: 1 right, 0 wrong, between them a chance such as the share of right continuations; None: not known.
    right: whether its final answer is; None: not known.  answer: the problem's, where there is one.
    """

    prompt: str
    steps: tuple[str, ...]
    labels: tuple[float | None, ...]
    right: bool | None = None
    answer: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def first_error(self) -> int | None:
        """The place of the first step with a label below 1/2, from 0; None if there is none."""
        return next((i for i, label in enumerate(self.labels) if label is not None and label < 0.5), None)


def verdict_in(right: Any, labels: Sequence[float | None] = ()) -> bool | None:
    """Whether a solution is right, by what is recorded of it: true or false, also as a number or a text; where that says nothing,
    it is if all of its steps are labelled, and none below 1/2. None: not known."""
    if isinstance(right, str):
        right = {"true": True, "1": True, "false": False, "0": False}.get(right.strip().lower())
    if isinstance(right, int | float) and math.isfinite(right):
        return right > 0
    return min(labels) >= 0.5 if labels and None not in labels else None  # type: ignore[type-var, operator]


def until_error(labels: Sequence[float | None]) -> int:
    """How many steps there are up to the first with a label below 1/2, itself included; all where there is none."""
    return next((i + 1 for i, label in enumerate(labels) if label is not None and label < 0.5), len(labels))


def solution_of(row: Row, place: str = "") -> Solution:
    """A row of our own format. Raises RewardlabError, naming the place, for one that is not."""
    where = f"{place}: " if place else ""
    prompt, steps = prompt_of(row.get("prompt"), where), row.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, str) for step in steps):
        raise RewardlabError(f"{where}a solution needs a list of texts as its `steps`, and has {steps!r:.60}")
    given = row.get("labels")
    labels = [None] * len(steps) if given is None else given
    if not isinstance(labels, list) or len(labels) != len(steps):
        raise RewardlabError(f"{where}{len(steps)} steps need as many `labels`, and the row has {labels!r:.60}")
    right, answer = row.get("right"), row.get("answer")
    if right is not None and not isinstance(right, bool):
        raise RewardlabError(f"{where}`right` says whether the answer is: true, false or null, and not {right!r:.60}")
    meta = {name: value for name, value in row.items() if name not in COLUMNS}
    checked = tuple(_label(label, where) for label in labels)
    return Solution(prompt, tuple(steps), checked, right, None if answer is None else str(answer), meta)


def prompt_of(value: Any, where: str = "") -> str:
    """A prompt as one text: it itself, or messages (`conversations.py`) as `asked` joins them.

    Raises RewardlabError for what is neither, and for messages that end with what a model said.
    """
    messages = decoded(value)
    if isinstance(messages, str):
        return messages
    if not is_conversation(messages):
        raise RewardlabError(f"{where}a solution needs a text, or messages, as its `prompt`, and has {value!r:.60}")
    roles = [role_of(first_of(m, WHO), f"{where}`prompt`") for m in messages]
    if "user" not in roles or roles[-1] not in ("user", "tool"):
        raise RewardlabError(
            f"{where}a `prompt` of messages ends with what is to be answered, not as {', '.join(roles)}: the reply is in `steps`"
        )
    return asked([(role, text_in(m)) for role, m in zip(roles, messages, strict=True)])


def asked(messages: Sequence[tuple[str, str]]) -> str:
    """What a scorer of steps reads before the steps, of (role, text) pairs: the system's text and the question, an empty line
    between; of a longer conversation all turns, each after who says it.

    The same text wherever a scorer learns, is measured, pays or searches.
    """
    system = [text for role, text in messages if role == "system"]
    said = [(role, text) for role, text in messages if role != "system"]
    turns = [text for _, text in said] if len(said) < 2 else [f"{role.capitalize()}: {text}" for role, text in said]
    return "\n\n".join([*system, *turns])


def row_of(solution: Solution) -> Row:
    """A solution as a row of a file; what is not known of the whole is left out, of a step it is null."""
    row: Row = {"prompt": solution.prompt, "steps": list(solution.steps), "labels": list(solution.labels)}
    if solution.right is not None:
        row["right"] = solution.right
    if solution.answer is not None:
        row["answer"] = solution.answer
    return {**row, **solution.meta}


def _label(label: Any, where: str) -> float | None:
    if label is None:
        return None
    # true and false are 1 and 0; NaN is no label
    if not isinstance(label, int | float) or not math.isfinite(label) or not 0 <= label <= 1:
        raise RewardlabError(f"{where}a label of a step is a number from 0 to 1 or null, and not {label!r:.60}")
    return float(label)
