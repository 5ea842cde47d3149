"""What a policy is asked: messages, and the answer it never sees."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol


@dataclass(frozen=True)
class Message:
    """Something a policy reads.

    `reward` pays the turn that the message answers (environments use it); `to` names the policy it is meant for.
    """

    role: str
    text: str
    images: tuple[Any, ...] = ()
    reward: float | None = None
    to: str | None = None


@dataclass(frozen=True)
class Problem:
    """A prompt, its gold answer, and whatever else a reward or an environment may want (`meta`, plain data)."""

    prompt: tuple[Message, ...]
    answer: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """A stable name for the prompt, for memories kept per problem."""
        text = "\x1f".join(f"{m.role}\x1e{m.text}" for m in self.prompt)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def question(self) -> str:
        """The text of the last user message."""
        return next((m.text for m in reversed(self.prompt) if m.role == "user"), "")


def ask(question: str, answer: Any = None, system: str | None = None, **meta: Any) -> Problem:
    """A one-question problem."""
    prompt = (Message("system", system),) if system else ()
    return Problem((*prompt, Message("user", question)), answer, meta)


class ProblemSource(Protocol):
    """Problems by position. Training position `i` always gives the same problem, so one number resumes the data."""

    def __getitem__(self, position: int) -> Problem: ...


@dataclass(frozen=True)
class Task:
    """Problems to train on, problems never trained on, and the name of the verifier that judges both.

    `verifier` names a part in `rewardlab.rewards`. For our own tasks, `demonstrate(problem, rng)` writes a worked solution
    as a careless teacher would (the embedded policy is warmed up on such text), and `pass_rate` is what that policy scores.
    `source` says how to load the task again.
    """

    name: str
    train: ProblemSource
    test: Sequence[Problem]
    verifier: str
    max_new: int = 128
    about: str = ""
    pass_rate: float | None = None
    demonstrate: Callable[[Problem, random.Random], str] | None = None
    columns: tuple[str, ...] = ("prompt", "answer")
    source: Mapping[str, Any] | None = None
