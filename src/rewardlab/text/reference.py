"""A reply beside a reference, as a reward model reads both that scores how near the one comes to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.core import Message, Problem
from rewardlab.text.filled import filled

LAYOUT = "{prompt}\n{reference}<|reward|>{prompt}"
"""The prompt of such a model, which the reply follows: POLAR's. A recipe whose rollout has a setting `layout` trains on one."""
COLUMN = "reference"


def against(prompt: Sequence[Message], reference: str, layout: str = LAYOUT) -> tuple[Message, ...]:
    """The messages and the reference as one message, by the layout."""
    return (Message("user", filled(layout, prompt="\n".join(m.text for m in prompt), reference=reference)),)


def reference_of(problem: Problem) -> str | None:
    """The column `reference` of a problem, a text or messages, else its answer; None where there is no text."""
    given = problem.meta.get(COLUMN)
    return as_text(problem.answer if given is None else given)


def as_text(value: Any) -> str | None:
    """A text, or messages [{"role": ..., "content": ...}, ...] as one, a line each; None for nothing and for anything else."""
    if isinstance(value, list | tuple):
        said = [m.get("content") if isinstance(m, Mapping) else None for m in value]
        value = "\n".join(text for text in said if isinstance(text, str)) if None not in said else None
    return value if isinstance(value, str) and value.strip() else None
