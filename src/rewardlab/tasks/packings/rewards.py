"""How good a packing is."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

from .problems import fits, read, worth


@reward
def packed(trajectory: Trajectory) -> Score:
    """The sum of radii as a share of a bound by area, from 0 to 1; 0 for what is no packing, or does not fit."""
    count = trajectory.problem.meta.get("circles")
    if not isinstance(count, int):
        return Score(None, why="the problem does not say how many circles")
    circles = read(trajectory.reply, count)
    if circles is None:
        return Score(0.0, why=f"no {count} lines of three digits")
    return Score(worth(circles), extracted=trajectory.reply.strip()) if fits(circles) else Score(0.0, why="it does not fit")
