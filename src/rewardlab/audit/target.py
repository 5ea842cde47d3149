"""Targets of an audit and their results, as plain data. `loading.py` and `judge.py` define the kinds of targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]
"""A target as plain data: `kind` (judge, function, part, recipe, run), and what that kind needs."""


def named(spec: Spec) -> str:
    """A target in messages, as its user named it."""
    if spec["kind"] == "function":
        return f"{spec['where']}:{spec['function']}"
    return str(next(spec[name] for name in ("name", "folder", "url") if name in spec))


@dataclass(frozen=True)
class Row:
    """One reply to be scored, with its prompt and the gold answer as the reward takes it."""

    prompt: str
    answer: Any
    reply: str
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class RewardResult:
    """The result of a reward. kind: number, none, nan, infinite, error, or (from `process.py`) hang or crash."""

    kind: str
    value: float | None = None
    why: str = ""
    extracted: str = ""
    seconds: float = 0.0


class Target:
    """A reward that can be called on rows.

    reads_gold: True, False, or None where only a trial can tell.  messages: it takes prompts and completions as lists of
    messages, not as texts.  concurrent: calls at a time.
    """

    name = ""
    concurrent = 1
    reads_gold: bool | None = None
    messages = False

    def score(self, rows: Sequence[Row]) -> list[RewardResult]:
        raise NotImplementedError

    def spent(self) -> dict[str, Any]:
        """What a served model was asked for it: the model, requests, tokens, cost; empty if none."""
        return {}


def result_of(score: Any) -> RewardResult:
    value = score.total
    if value is None:
        return RewardResult("none", None, score.why, score.extracted)
    kind = "number" if math.isfinite(value) else "nan" if math.isnan(value) else "infinite"
    return RewardResult(kind, value if kind == "number" else None, score.why, score.extracted)
