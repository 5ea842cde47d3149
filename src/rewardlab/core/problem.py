"""What a policy is asked: messages, and the answer it never sees."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Message:
    """Something a policy reads.

    data: an observation that is no text, as an array, for policies that read arrays.  reward: pays the turn that the message
    answers (environments use it).  to: names the policy it is meant for.  last: nothing is decided after it, so it need not
    be read; it only pays.
    """

    role: str
    text: str = ""
    images: tuple[Any, ...] = ()
    data: Any = None
    reward: float | None = None
    to: str | None = None
    last: bool = False


@dataclass(frozen=True)
class Problem:
    """A prompt, its gold answer, and whatever else a reward or an environment may want (`meta`, plain data)."""

    prompt: tuple[Message, ...]
    answer: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """A stable name for the prompt, for memories kept per problem."""
        digest = hashlib.blake2b("\x1f".join(f"{m.role}\x1e{m.text}" for m in self.prompt).encode(), digest_size=12)
        for seen in (x for m in self.prompt for x in (*m.images, m.data) if x is not None):
            digest.update(np.ascontiguousarray(seen).tobytes())
        return digest.hexdigest()

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
    as a careless teacher would: a reply, or replies and what is answered to them by turns. The small policy that comes with
    rewardlab is warmed up on `lessons` batches of such text, and `pass_rate` is what it scores then. `model` names the policy
    that the task is played with where no other is given. `source` says how to load the task again.
    """

    name: str
    train: ProblemSource
    test: Sequence[Problem]
    verifier: str
    max_new: int = 128
    about: str = ""
    pass_rate: float | None = None
    demonstrate: Callable[[Problem, random.Random], Any] | None = None
    lessons: int = 600
    model: str = "embedded"
    columns: tuple[str, ...] = ("prompt", "answer")
    source: Mapping[str, Any] | None = None
