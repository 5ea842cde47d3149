"""The verdicts that the task's verifier has given on the rollouts of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .score import Score, Scores
from .trajectory import Group, Trajectory


@dataclass
class Verdicts:
    """The verifier's score of each rollout of a step, so that no rollout is verified twice. Never saved.

    Rollouts are recognised by identity. The scores of a step stay readable until the first new rollout of a later step is verified:
    the log reads them after the step counter has advanced.
    """

    step: int = -1
    known: dict[int, tuple[Trajectory, Score]] = field(default_factory=dict)
    """By id. The trajectory is stored too, since Python may give the id of a deleted object to a new one."""

    def of(self, groups: list[Group], step: int, verify: Callable[[list[Group]], Scores]) -> Scores:
        """The score of every rollout; `verify` is called with the new ones only, in their groups."""
        # copied before `clear`: a call may mix new rollouts with some of the step before
        remembered = dict(self.known)
        new = [[t for t in group if id(t) not in remembered] for group in groups]
        new = [group for group in new if group]
        if new:
            if step != self.step:
                self.step = step
                self.known.clear()
            for group, row in zip(new, verify(new), strict=True):
                self.known.update({id(t): (t, s) for t, s in zip(group, row, strict=True)})
            remembered |= self.known
        return [[remembered[id(t)][1] for t in group] for group in groups]

    def copy(self) -> Verdicts:
        return replace(self, known=dict(self.known))
