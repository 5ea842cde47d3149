"""What an environment of `verifiers` is here, whichever interface it is written for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rewardlab.core import Message


@dataclass(frozen=True)
class Row:
    """A problem of an environment.  data: as JSON, from which the environment plays it."""

    prompt: tuple[Message, ...]
    answer: Any
    data: str


@dataclass(frozen=True)
class Outcome:
    """What an episode earned.  parts: each reward function's own value, and metrics.  why: there is no verdict (reward None)."""

    reward: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


class Loaded(Protocol):
    """An environment that is loaded."""

    has_test: bool

    def rows(self, test: bool) -> Iterator[Row]:
        """Its problems, perhaps without end."""

    def play(self, data: str) -> Callable[[str, str], Awaitable[Any]]:
        """The program that plays a row, given the address of a model's API and the model's name; its result is for `scores`."""

    def shown(self, data: str) -> list[str]:
        """The texts of the messages that a row begins with."""

    def closing(self, result: Any) -> str:
        """What the environment says at the end, where it says something that nobody replies to."""

    def scores(self, results: list[Any]) -> list[Outcome]:
        """What the episodes of one problem earned, which a rubric may compare."""
