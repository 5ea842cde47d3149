"""Whether the finished lines of a solution are right: an exact scorer of partial solutions."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import going_on
from rewardlab.text.splitters import cut


@reward
def correct_so_far(trajectory: Trajectory, *, partial: bool = False) -> Score:
    """1 while every finished line of the reply follows from the line before it (`going_on`), 0 from the first error on.

    For problems whose meta["steps"] are equations "7+5=12"; no verdict for others. The last line is judged once it has ended, or
    the reply has. partial: until then, too: it is wrong once no right line begins as it does.
    """
    gold = trajectory.problem.meta.get("steps")
    if not gold:
        return Score(None, why="the problem has no gold steps")
    lines = cut(trajectory.reply, "newline") if trajectory.reply.strip() else []
    begun = ""
    if lines and not trajectory.reply.endswith("\n") and trajectory.stop != "end":
        lines, begun = lines[:-1], lines[-1]
    right = going_on(lines, gold)
    if partial and begun:
        # after right lines the next right one is the gold one
        rest = [*gold, "Answer:" + gold[-1].rpartition("=")[2], ""][len(lines) :]
        right.append(bool(rest) and rest[0].replace(" ", "").startswith(begun.replace(" ", "")))
    if False in right:
        return Score(0.0, why=f"line {right.index(False) + 1} is wrong")
    return Score(1.0, why=f"{len(right)} lines, none of them wrong")
