"""Scores and labels recorded in the data."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import number_of
from rewardlab.rewards.reward import reward


@reward
def score_in_data(trajectory: Trajectory) -> Score:
    """The number in the data's column for a recorded reply: `chosen_score` for what stands in `chosen`, as `rewardlab data pairs`
    writes it."""
    column = f"{trajectory.tag}_score"
    value = number_of(trajectory.problem.meta.get(column))
    return Score(value, why="" if value is not None else f"the data has no number in a column {column}")


@reward
def number_in_data(trajectory: Trajectory, *, column: str = "pass_rate") -> Score:
    """The number in this column of the problem, whatever the reply: a property of the prompt, such as the pass rate that `rewardlab
    data pass-rate` writes.
    """
    value = number_of(trajectory.problem.meta.get(column))
    why = f"the data has no number in the column {column}; rewardlab data pass-rate writes one"
    return Score(value, why="" if value is not None else why)


@reward(steps=True)
def step_labels(trajectory: Trajectory, *, column: str = "labels") -> list[tuple[int, float]] | Score:
    """The labels in this column of the problem, at the ends of the steps that the rollout marked; a step with null gets none."""
    labels = trajectory.problem.meta.get(column)
    if not labels or len(labels) != len(trajectory.steps):
        return Score(None, why=f"the problem has no label for each of {len(trajectory.steps)} steps in the column {column}")
    return [(at, float(label)) for at, label in zip(trajectory.steps, labels, strict=True) if label is not None]
