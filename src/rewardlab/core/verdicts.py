"""The verdicts that the task's verifier has given on the rollouts of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .score import Score, Scores
from .trajectory import Group, Trajectory


@dataclass
class Verdicts:
    """Scores by rollout, as the same object: each rollout is verified once, whoever asks. Never saved.

    The first new rollouts of a later step replace those of the step before, which until then can still be read (by the log, once
    the step has been counted).
    """

    step: int = -1
    known: dict[int, tuple[Trajectory, Score]] = field(default_factory=dict)
    """By id, beside the trajectory itself: an object that is held here cannot lend its id to another."""

    def of(self, groups: list[Group], step: int, verify: Callable[[list[Group]], Scores]) -> Scores:
        """The score of every rollout; `verify` is asked about new ones only, in their groups."""
        known = dict(self.known)
        new = [[t for t in group if id(t) not in known] for group in groups]
        new = [group for group in new if group]
        if new:
            if step != self.step:
                self.step = step
                self.known.clear()
            for group, row in zip(new, verify(new), strict=True):
                self.known.update({id(t): (t, s) for t, s in zip(group, row, strict=True)})
            known |= self.known
        return [[known[id(t)][1] for t in group] for group in groups]

    def copy(self) -> Verdicts:
        return replace(self, known=dict(self.known))
