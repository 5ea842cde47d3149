"""Problems: a prompt for the policy, and the gold answer that it never sees."""

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
    """A message that a policy reads.

    data: an observation as an array, for policies that read arrays instead of text.  reward: of the turn that the message
    answers (set by environments).  to: the name of the policy that it is for.  last: the episode ends with it, so no policy
    reads it; it only carries a reward.
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
    """A prompt, its gold answer, and further plain data for rewards and environments (`meta`)."""

    prompt: tuple[Message, ...]
    answer: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """A stable name for the prompt, by which memories per problem are kept."""
        digest = hashlib.blake2b("\x1f".join(f"{m.role}\x1e{m.text}" for m in self.prompt).encode(), digest_size=12)
        for array in (x for m in self.prompt for x in (*m.images, m.data) if x is not None):
            digest.update(np.ascontiguousarray(array).tobytes())
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
    """Problems by position. Training position `i` always gives the same problem, so the position is all that resuming needs."""

    def __getitem__(self, position: int) -> Problem: ...


@dataclass(frozen=True)
class Task:
    """Training problems, held-out problems, and the name of the verifier for both.

    verifier: the name of a reward part.  max_new: the most tokens of a reply.  model: the policy that is used if no other is named.
    demonstrate(problem, rng): for our own tasks, an imperfect worked solution: a reply, or replies and the messages that answer
    them by turns. The small policy that comes with rewardlab is warmed up on `warmup_steps` batches of such text, after which it
    scores `pass_rate`.  source: how to load the task again.
    """

    name: str
    train: ProblemSource
    test: Sequence[Problem]
    verifier: str
    max_new: int = 128
    about: str = ""
    pass_rate: float | None = None
    demonstrate: Callable[[Problem, random.Random], Any] | None = None
    warmup_steps: int = 600
    model: str = "embedded"
    columns: tuple[str, ...] = ("prompt", "answer")
    source: Mapping[str, Any] | None = None
