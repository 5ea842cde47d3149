"""Replies that another model wrote, as a policy: what selects among samples runs on recorded ones, and nothing is sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np
import torch

from rewardlab.core import Message, Problem, Sampling, TokenCount, Trajectory, Turn
from rewardlab.errors import RewardlabError

NAME = "recorded"
COLUMN, COUNTS = "replies", "tokens"
CANNOT_TRAIN = "recorded replies are no model, and nothing can be trained on `recorded`: name a model"
BETWEEN = "\n\n"
"""Stands between the steps of a reply that is recorded in steps."""


class NotRecorded(RewardlabError, AttributeError):
    """Something that only a model can do. An AttributeError too, so that `hasattr` says no."""


class RecordedPolicy:
    """The policy `recorded`: of the n replies that are asked for, the k-th is the k-th in the problem's column `replies`.

    A reply is a text, or a list of steps, whose ends are then marked. So all methods see the same replies, whatever their seed and
    temperature. Ids are characters; tokens are counted by the problem's column `tokens`, without one by characters. `path` of a
    trajectory is (k,), by which rewards find what else is recorded of it.
    """

    name = "policy"
    step = 0
    device = torch.device("cpu")
    context = 1 << 40
    sees = True
    """Whoever wrote the replies has seen what the prompts show."""

    def __init__(self) -> None:
        self.token_count = TokenCount()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotRecorded(f"{CANNOT_TRAIN} (it has no {name!r})")

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)

    def decode(self, ids: np.ndarray) -> str:
        return "".join(map(chr, ids.tolist()))

    def pieces(self, ids: np.ndarray) -> list[str]:
        return [*map(chr, ids.tolist())]

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        """Whatever is recorded fits."""

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        texts = ["\n".join(m.text for m in new) for new in messages]
        return [t.plus(Turn(None, self.encode(text), text=text)) for t, text in zip(trajectories, texts, strict=True)]

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """The recorded replies, the first to the first row of a problem. Raises RewardlabError where there are too few."""
        if sampling.stop or sampling.stop_when:
            raise RewardlabError("recorded replies are whole, and this rollout stops within them: use one of whole replies")
        asked: Counter[int] = Counter()
        found = []
        for t in trajectories:
            if any(turn.author is not None for turn in t.turns):
                raise RewardlabError("recorded replies are whole, and this rollout continues one: use one of whole replies")
            # a row that knows its place among those of its problem gets the reply of that place
            found.append(self._written(t, t.path[-1] if t.path else asked[id(t.problem)]))
            asked[id(t.problem)] += 1
        return found

    def _written(self, t: Trajectory, k: int) -> Trajectory:
        reply = reply_of(t.problem, k)
        steps = reply if isinstance(reply, list) else []
        text = BETWEEN.join(steps) if steps else reply
        counts = t.problem.meta.get(COUNTS)
        turn = Turn(self.name, self.encode(text), text=text, tokens=None if counts is None else int(counts[k]))
        self.token_count.generated += len(turn.ids) if turn.tokens is None else turn.tokens
        # the last character of a step, of all but the last one after what stands between
        ends = (end - 1 for end in accumulate(len(step) + len(BETWEEN) for step in steps[:-1]))
        marks = [len(t) + end for end in ends] + ([len(t) + len(text) - 1] if steps else [])
        return replace(t.plus(turn, "end"), path=(k,), steps=tuple(marks))


def reply_of(problem: Problem, k: int) -> Any:
    """The k-th recorded reply of a problem: a text, or its steps. Raises RewardlabError where there is none."""
    problem.required(COLUMN, by="the model `recorded`", how="each row holds a list of replies, a text or a list of steps each")
    replies, named = problem.meta[COLUMN], f"problem {problem.question[:60]!r}"
    if not isinstance(replies, list):
        raise RewardlabError(f"the column {COLUMN!r} of {named} must be a list of replies, each a text or a list of steps")
    if k >= len(replies):
        raise RewardlabError(f"{named} has {len(replies)} recorded replies, and more are asked for: lower n")
    reply = replies[k]
    if isinstance(reply, str) or (isinstance(reply, list) and reply and all(isinstance(step, str) for step in reply)):
        return reply
    raise RewardlabError(f"reply {k} in the column {COLUMN!r} of {named} must be a text or a list of steps, not {reply!r:.60}")
