"""How much of a module was found."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward


@reward
def module_f1(trajectory: Trajectory) -> Score:
    """The F1 of the nodes that a reply names, one a line, against the column `module`, without the seed that the question names."""
    module, seed = trajectory.problem.meta.get("module"), trajectory.problem.meta.get("seed")
    if not module:
        return Score(None, why="the problem has no module")
    wanted = set(module) - {seed}
    named = {line.strip() for line in trajectory.reply.splitlines() if line.strip()} - {seed}
    hits = len(named & wanted)
    return Score(2 * hits / (len(named) + len(wanted)), why=f"{hits} of {len(wanted)} nodes, {len(named)} named")
