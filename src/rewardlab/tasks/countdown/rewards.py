"""The verifier of countdown: evaluates the expression of a reply exactly, without ever running it as code."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.answers import after_answer, boxed
from rewardlab.text.equations import evaluate


@reward
def countdown_equation(trajectory: Trajectory) -> Score:
    """1 where the expression after "answer" uses each number of meta["numbers"] once and comes to meta["target"]."""
    meta = trajectory.problem.meta
    if "numbers" not in meta or "target" not in meta:
        return Score(None, why="the problem does not say its numbers and target")
    stated = boxed(trajectory.reply) or after_answer(trajectory.reply)
    if stated is None:
        return Score(0.0, why="no answer found")
    try:
        value, used = evaluate(stated)
    except ValueError as e:
        return Score(0.0, why=str(e))
    # as multisets: a number that is given twice must be used twice
    if sorted(used) != sorted(meta["numbers"]):
        return Score(0.0, why=f"uses {sorted(used)}, not each of {sorted(meta['numbers'])} once")
    right = value == meta["target"]
    return Score(float(right), why="right" if right else f"comes to {value}, not {meta['target']}")
