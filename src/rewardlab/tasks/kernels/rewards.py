"""Rewards for rewriting programs: for being right, for being faster, and for not leaving the work to the library."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

from .judge import Judged, judge


@reward(steps=True)
def speedup(trajectory: Trajectory, *, most: float = 3.0) -> list[tuple[int, float]]:
    """For every turn how many times fewer operations its program needs than the reference, at most `most`; 0 if it is wrong."""
    return [(end, min(most, judged.speedup)) for end, judged in _turns(trajectory)]


@reward(steps=True)
def work_share(trajectory: Trajectory) -> list[tuple[int, float]]:
    """For every turn the share of the operations that are its program's own, not the library's; 0 if it is wrong."""
    return [(end, judged.own if judged.right else 0.0) for end, judged in _turns(trajectory)]


@reward
def fast_program(trajectory: Trajectory, *, times: float = 2.0, best: bool = False) -> Score:
    """1 where the last program (with `best`: any) is right and at least `times` as fast as the reference."""
    judgements = [judged for _, judged in _turns(trajectory)] or [judge("", trajectory.problem.meta)]
    chosen = max(judgements, key=lambda x: x.speedup) if best else judgements[-1]
    return Score(float(chosen.speedup >= times), why=str(chosen))


def _turns(trajectory: Trajectory) -> list[tuple[int, Judged]]:
    meta = trajectory.problem.meta
    return [(end, judge(reply, meta)) for end, reply in zip(trajectory.ends, trajectory.replies, strict=True)]
