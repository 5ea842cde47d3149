"""Trajectories: the decisions of a policy, their log-probabilities, and the text between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np

from rewardlab.core.problem import Message, Problem
from rewardlab.errors import RewardlabError


# eq=False: `==` on arrays is not a truth value, and trajectories are recognised by identity
@dataclass(frozen=True, eq=False)
class Turn:
    """A run of consecutive decisions by one author.

    author: the name of the policy that decided (for recorded replies, of the policy that learns from them); None for text that
        is only read: prompts, tool results.
    ids: (n, *shape) tokens, latents or motor commands.
    logprobs: (n,) log-probs of the raw policy; None if the ids were not sampled.
    sampled: (n,) log-probs of the distribution that was sampled from, after temperature, top-k and top-p.
    step: the training step whose weights sampled it, -1 for recorded text.
    reward: the environment's reward for the decisions before this message.
    tokens: that its author wrote, where they are not `ids` (a served model's text is held as characters); None: as many as ids.
    vectors: (n, d) what a text policy reads in place of embeddings of the ids, which are then no tokens (`policies/vectors.py`).
    """

    author: str | None
    ids: np.ndarray
    logprobs: np.ndarray | None = None
    sampled: np.ndarray | None = None
    text: str = ""
    images: tuple = ()
    step: int = -1
    reward: float | None = None
    tokens: int | None = None
    vectors: np.ndarray | None = None

    def cut(self, n: int, text: str = "") -> Turn:
        """The first n decisions."""
        logprobs, sampled, vectors = (None if x is None else x[:n] for x in (self.logprobs, self.sampled, self.vectors))
        tokens = None if self.tokens is None else min(self.tokens, n)
        return replace(self, ids=self.ids[:n], logprobs=logprobs, sampled=sampled, text=text, tokens=tokens, vectors=vectors)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One attempt at a problem.

    stop: why it ended ("end", "stop", "predicate", "length", "entropy"); None while it may be continued.
    path: child numbers from the root of a tree; rows that begin with the same numbers share those steps.
    steps: token position of the last decision of each reasoning step; set by a splitter.
    """

    problem: Problem
    turns: tuple[Turn, ...] = ()
    stop: str | None = None
    path: tuple[int, ...] = ()
    tag: str = ""
    steps: tuple[int, ...] = ()

    def __len__(self) -> int:
        return sum(len(t.ids) for t in self.turns)

    @property
    def ids(self) -> np.ndarray:
        return np.concatenate([t.ids for t in self.turns]) if self.turns else np.zeros(0, np.int64)

    def mask_of(self, author: str = "policy") -> np.ndarray:
        """(len,) True where `author` decided."""
        return np.concatenate([np.full(len(t.ids), t.author == author) for t in self.turns] or [np.zeros(0, bool)])

    @property
    def mask(self) -> np.ndarray:
        """(len,) True where any policy decided; False for text that was only read."""
        return np.concatenate([np.full(len(t.ids), t.author is not None) for t in self.turns] or [np.zeros(0, bool)])

    @property
    def written(self) -> int:
        """The tokens that policies wrote in it, of which replies have at most `max_new`."""
        return sum(len(t.ids) if t.tokens is None else t.tokens for t in self.turns if _writes(t))

    def column(self, name: str, missing: float = np.nan) -> np.ndarray:
        """(len,) `logprobs` or `sampled` over all turns; `missing` where nothing was sampled."""
        parts = [getattr(t, name) for t in self.turns]
        filled = [np.full(len(t.ids), missing, np.float32) if x is None else x for t, x in zip(self.turns, parts, strict=True)]
        return np.concatenate(filled) if filled else np.zeros(0, np.float32)

    def _runs(self) -> Iterator[tuple[int, list[Turn]]]:
        """Maximal runs of turns by one author, each with the position just after it."""
        # a reply sampled over several training steps is several turns in a row
        run: list[Turn] = []
        position = 0
        for turn in self.turns:
            if run and turn.author != run[-1].author:
                yield position, run
                run = []
            run.append(turn)
            position += len(turn.ids)
        if run:
            yield position, run

    @property
    def replies(self) -> list[str]:
        """The text of each reply; a reply written over several updates is one."""
        return ["".join(t.text for t in run) for _, run in self._runs() if _writes(run[0])]

    @property
    def ends(self) -> list[int]:
        """Position of the last decision of each reply."""
        return [end - 1 for end, run in self._runs() if _writes(run[0])]

    @property
    def reply(self) -> str:
        """The last reply, empty if there is none."""
        replies = self.replies
        return replies[-1] if replies else ""

    @property
    def paid(self) -> list[tuple[int, float]]:
        """(position, reward) pairs of the environment, each at the last position before the message that carries it."""
        rewards, position = [], 0
        for turn in self.turns:
            # a reward before the first token has no position to fall on
            if turn.reward is not None and position:
                rewards.append((position - 1, turn.reward))
            position += len(turn.ids)
        return rewards

    @property
    def spans(self) -> list[tuple[tuple[int, ...], int, int]]:
        """(node, start, end) of each step of a row of a search tree, in token positions.

        In such a row each turn after the prompt is one step, and `path` holds the child taken at each; the node that a step leads
        to is the path up to it. Raises RewardlabError for a row that is not of a tree.
        """
        if len(self.turns) != len(self.path) + 1:
            raise RewardlabError(
                f"a row with {len(self.turns)} turns and the path {self.path} does not come from a search tree: use a tree rollout"
            )
        # the first end is that of the prompt, where the first step starts
        ends = accumulate(len(turn.ids) for turn in self.turns)
        return [(self.path[:k], start, end) for k, (start, end) in enumerate(pairwise(ends), 1)]

    def plus(self, turn: Turn, stop: str | None = None) -> Trajectory:
        return replace(self, turns=(*self.turns, turn), stop=stop)

    def cut(self, n: int, decode: Callable[[np.ndarray], str] = lambda ids: "") -> Trajectory:
        """The first n positions, to be continued from there; `decode` gives the text of a turn that is cut inside."""
        turns: list[Turn] = []
        left = n
        for turn in self.turns:
            if left <= 0:
                break
            turns.append(turn if len(turn.ids) <= left else turn.cut(left, decode(turn.ids[:left])))
            left -= len(turn.ids)
        return replace(self, turns=tuple(turns), stop=None, steps=tuple(s for s in self.steps if s < n))


def _writes(turn: Turn) -> bool:
    return turn.author is not None and turn.vectors is None


Group = list[Trajectory]


@dataclass(frozen=True)
class Sampling:
    """How to sample replies.

    stop: strings that end a reply; they stay in it.  stop_when: called with the text at every new line; True ends the reply.
    enough: return as soon as this many rows have finished; the others stay open (`stop is None`).
    max_entropy: a reply of at least `min_new` tokens pauses before one whose distribution, before temperature, top-k and top-p, has
        more entropy than this, in nats.
    seeds: one for each row of a call, which then samples the same whatever else is sampled with it, or when.
    """

    max_new: int = 128
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: tuple[str, ...] = ()
    # not compared: two lambdas that do the same are not equal
    stop_when: Callable[[str], bool] | None = field(default=None, compare=False)
    enough: int | None = None
    max_entropy: float = math.inf
    min_new: int = 1
    seeds: tuple[int, ...] | None = None

    @property
    def raw(self) -> bool:
        """Whether replies are sampled from the unchanged distribution of the policy."""
        return self.temperature == 1.0 and self.top_p >= 1.0 and self.top_k <= 0


__all__ = ["Group", "Message", "Problem", "Sampling", "Trajectory", "Turn"]
