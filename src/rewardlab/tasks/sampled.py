"""Pairs of samples of the small policy, sampled on first use and cached."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rewardlab.core import Problem, seed_of
from rewardlab.errors import RewardlabError

from .pairs import Reply
from .sources import Shuffled

SAMPLES = 4
"""Replies that are sampled for a problem; those for which all are right, or all wrong, give no pair."""


@dataclass
class SampledPairs:
    """The problems that the small policy of a task gets right in some samples and wrong in others, each with such a pair.

    graded: a wrong reply with its quality, below 1.  shuffled: in epochs, without end. Nothing is sampled before the first problem
    is asked for, since that takes a while.
    """

    formula: str
    problems: Sequence[Problem]
    graded: Callable[[Problem, str], Reply]
    pair: Callable[[Problem, tuple[Reply, Reply], random.Random], Problem]
    shuffled: bool = False

    @cached_property
    def found(self) -> list[Problem]:
        """The problems with their pairs."""
        from rewardlab.models.samples import samples

        replies = samples(self.formula, self.problems, SAMPLES)
        found = [p for problem, row in zip(self.problems, replies, strict=True) if (p := self._paired(problem, row))]
        if not found:
            raise RewardlabError(f"the small policy of {self.formula} gets no problem right in one sample and wrong in another")
        return found

    @cached_property
    def _source(self) -> Any:
        return Shuffled(self.found) if self.shuffled else self.found

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, position: Any) -> Any:
        return self._source[position]

    def _paired(self, problem: Problem, samples: Sequence[tuple[str, float]]) -> Problem | None:
        # by the task's verifier, as anything else of the policy is judged
        right = next((Reply(text, 1.0) for text, verdict in samples if verdict >= 1), None)
        wrong = next((self.graded(problem, text) for text, verdict in samples if verdict < 1), None)
        if right is None or wrong is None:
            return None
        return self.pair(problem, (right, wrong), random.Random(seed_of("preferences", problem.key)))
