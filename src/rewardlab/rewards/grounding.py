"""Whether what an agent did could be done."""

from __future__ import annotations

from rewardlab.core import Trajectory
from rewardlab.rewards.reward import reward


@reward(steps=True)
def executed(trajectory: Trajectory, *, refused: str = "Nothing") -> list[tuple[int, float]]:
    """1 at the end of each turn of an episode that the environment did not answer by `refused`, else 0.

    A turn that nothing answers, such as the last, could be done.  Wang et al. 2025, arXiv:2505.20732
    """
    steps: list[tuple[int, float]] = []
    position = 0
    for turn in trajectory.turns:
        if turn.author is None and steps and refused in turn.text and steps[-1][0] == position - 1:
            steps[-1] = (position - 1, 0.0)
        position += len(turn.ids)
        if turn.author is not None and len(turn.ids):
            # a reply written over several updates is several turns in a row: its end is the last one's
            steps = [s for s in steps if s[0] != position - 1 - len(turn.ids)] + [(position - 1, 1.0)]
    return steps
