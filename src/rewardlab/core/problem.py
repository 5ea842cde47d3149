"""Problems: a prompt for the policy, and the gold answer that it never sees."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rewardlab.errors import RewardlabError


@dataclass(frozen=True)
class Message:
    """A message that a policy reads.

    data: an observation as an array, for policies that read arrays instead of text.  reward: for the turn that this message
    answers (set by environments).  to: the name of the policy that reads it.  last: the episode ends with it, so no policy
    reads it; it only carries a reward.
    tools: functions that the policy may call, as the JSON text of a list of their schemas, for the chat template; `text` says the
    same in words, for a template that knows no tools.  results: what several calls gave, each a message of its own in the chat
    template; `text` holds them together.
    """

    role: str
    text: str = ""
    images: tuple[Any, ...] = ()
    data: Any = None
    reward: float | None = None
    to: str | None = None
    last: bool = False
    tools: str = ""
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A prompt, its gold answer, and further plain data for rewards and environments (`meta`).

    place: where it was read, for messages: file and line.
    """

    prompt: tuple[Message, ...]
    answer: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    place: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, tuple | list) or not all(isinstance(message, Message) for message in self.prompt):
            raise RewardlabError(
                f"the prompt of a problem is a tuple of Messages, not {repr(self.prompt)[:60]}: write ask(question, answer), or "
                'Problem((Message("user", question),), answer)'
            )

    @cached_property
    def key(self) -> str:
        """A hash of the prompt that is the same in every process and run: the key for anything remembered per problem."""
        # control characters keep prompts from running together; hash() would be salted; a picture in a file is not decoded for it
        digest = hashlib.blake2b("\x1f".join(f"{m.role}\x1e{m.text}" for m in self.prompt).encode(), digest_size=12)
        for array in (x for m in self.prompt for x in (*m.images, m.data) if x is not None):
            digest.update(array.digest.encode() if hasattr(array, "digest") else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @property
    def question(self) -> str:
        """The text of the last user message."""
        return next((m.text for m in reversed(self.prompt) if m.role == "user"), "")

    def required(self, *columns: str, by: str, how: str = "") -> None:
        """Raise RewardlabError unless the problem has these columns.  by: what reads them.  how: where they come from, in words."""
        if missing := [name for name in columns if self.meta.get(name) is None]:
            needed, lacks = " and ".join(map(repr, columns)), " and no ".join(map(repr, missing))
            has = ", ".join(self.meta) or "no further columns"
            raise RewardlabError(
                f"{by} needs the columns {needed} in every row; problem {self.question[:60]!r} has no {lacks} (it has {has})"
                + (f". {how}" if how else "")
            )

    def reworded(self, text: str) -> Problem:
        """The problem with another text as its last user message; a system message, and what was said before, stay."""
        last = max((i for i, m in enumerate(self.prompt) if m.role == "user"), default=len(self.prompt))
        said = Message("user", text, images=sum((m.images for m in self.prompt[last : last + 1]), ()))
        return replace(self, prompt=(*self.prompt[:last], said, *self.prompt[last + 1 :]))

    def told(self, system: str) -> Problem:
        """The problem with this system message, after what its own says, if it has one."""
        own = [m.text for m in self.prompt[:1] if m.role == "system"]
        return replace(self, prompt=(Message("system", "\n\n".join([*own, system])), *self.prompt[len(own) :]))


def ask(question: str, answer: Any = None, system: str | None = None, **meta: Any) -> Problem:
    """A problem of one question, with an optional system message; `meta` holds further columns."""
    prompt = (Message("system", system),) if system else ()
    return Problem((*prompt, Message("user", question)), answer, meta)


class ProblemSource(Protocol):
    """Problems by position. Position `i` always gives the same problem, so resuming a run needs the position alone."""

    def __getitem__(self, position: int) -> Problem: ...


@dataclass(frozen=True)
class Task:
    """Training problems, held-out problems, and the name of the verifier for both.

    verifier: the name of a reward part.  step_verifier: that of one which judges single steps (lines), where they can be checked.
    max_new: the most tokens of a reply.  model: the default policy.
    demonstrate: (problem, rng) -> an imperfect worked solution, for our own tasks: a reply, or a list in which replies and the
    messages that answer them take turns. The small policy that comes with rewardlab is first trained on `warmup_steps` batches of
    such text, and on as long as its start is below `window`: the least and the most that it should get at first, greedily and by
    one sample. pass_rate: its pass@1 then.  shared: whether the policy that arithmetic and countdown share was taught just this.
    warmed_as: the task whose small policy plays this one too (`arithmetic:error=0.3`).  environment: the part that answers the
    replies, where the problems are played, in at most so many `turns`.  played: whether every method plays it, those too that would
    sample one reply a problem, because without its environment there is nothing to judge.  source: how to load the task again.
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
    window: tuple[float, float] = (0.2, 0.6)
    shared: bool = False
    warmed_as: str | None = None
    environment: str | None = None
    turns: int = 1
    played: bool = False
    model: str = "embedded"
    columns: tuple[str, ...] = ("prompt", "answer")
    source: Mapping[str, Any] | None = None
    step_verifier: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise RewardlabError(f"the name of a task must be a text, not {self.name!r}")
        if not isinstance(self.verifier, str):
            raise RewardlabError(
                f'the verifier of the task {self.name} is given by its name, such as "exact_match", not {self.verifier!r}'
            )
        for side, problems in (("train", self.train), ("test", self.test)):
            if isinstance(problems, str | Problem | Mapping) or not hasattr(problems, "__getitem__"):
                raise RewardlabError(f"{side} of the task {self.name} must be a list of problems, not {repr(problems)[:60]}")
            # what is made on demand is not asked for here
            listed = problems if isinstance(problems, list | tuple) else ()
            for i, problem in enumerate(listed):
                if not isinstance(problem, Problem):
                    raise RewardlabError(
                        f"{side}[{i}] of the task {self.name} must be a Problem, not {repr(problem)[:60]}: ask(question, answer)"
                    )

    def __repr__(self) -> str:
        """Without the problems, which may be many."""
        train = len(self.train) if isinstance(self.train, Sized) else "endless"
        return f"Task({self.name!r}: {train} training problems, {len(self.test)} held out, verifier {self.verifier})"
