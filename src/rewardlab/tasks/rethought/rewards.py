"""What is right in a train of thought."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import going_on
from rewardlab.text.splitters import cut

from .problems import MARK


@reward(steps=True)
def sound_thoughts(trajectory: Trajectory, *, mark: str = MARK) -> list[tuple[int, float]] | Score:
    """1 at the end of each line before the mark that does what the gold step in its place does, rightly, 0 at the others there.

    For problems whose meta["steps"] are equations. No verdict where the mark is missing, or comes first.
    """
    gold, lines = trajectory.problem.meta.get("steps"), cut(trajectory.reply, "newline")
    if len(lines) != len(trajectory.steps):
        return Score(None, why="text and tokens have different numbers of steps")
    if not gold or mark not in lines[1:]:
        return Score(None, why="the problem has no steps, or the reply no thought")
    thought = lines[: lines.index(mark, 1)]
    # a further line than there are steps would be judged as the answer
    right = going_on(thought, gold)[: len(gold)]
    return [(at, float(ok)) for at, ok in zip(trajectory.steps, right, strict=False)]
