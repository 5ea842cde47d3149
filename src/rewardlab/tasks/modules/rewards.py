"""How much of a module was found."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward


@reward
def module_f1(trajectory: Trajectory) -> Score:
    """The F1 of the nodes that a reply names, one a line, with the seed, against the column `module`."""
    module, seed = trajectory.problem.meta.get("module"), trajectory.problem.meta.get("seed")
    if not module:
        return Score(None, why="the problem has no module")
    named = {line.strip() for line in trajectory.reply.splitlines() if line.strip()} | {seed}
    hits = len(named & set(module))
    return Score(2 * hits / (len(named) + len(module)), why=f"{hits} of {len(module)} nodes, {len(named)} named")
