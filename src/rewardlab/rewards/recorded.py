"""Scores and labels recorded in the data."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Score, Trajectory
from rewardlab.data.solutions import until_error, verdict_in
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
def step_labels(trajectory: Trajectory, *, column: str = "labels", after_error: bool = True) -> list[tuple[int, float]] | Score:
    """The labels in this column of the problem, at the ends of the steps that the rollout marked; a step with null gets none.

    after_error: whether steps after the first with a label below 1/2 have theirs.
    """
    labels = trajectory.problem.meta.get(column)
    if not labels or len(labels) != len(trajectory.steps):
        return Score(None, why=f"the problem has no label for each of {len(trajectory.steps)} steps in the column {column}")
    taught = labels if after_error else labels[: until_error(labels)]
    return [(at, float(label)) for at, label in zip(trajectory.steps, taught, strict=False) if label is not None]


@reward(steps=True)
def outcome_label(trajectory: Trajectory, *, column: str = "right", labels: str = "labels") -> list[tuple[int, float]] | Score:
    """At the end of the last step, 1 or 0: whether the recorded solution is right by this column of the problem.

    Where that says nothing, it is right if none of its steps has a label below 1/2 in the column `labels`, and all have one.
    """
    meta = trajectory.problem.meta
    right = verdict_in(meta.get(column), meta.get(labels) or ())
    if right is None or not trajectory.steps:
        return Score(None, why=f"the problem does not say in the column {column} whether its solution is right")
    return [(trajectory.steps[-1], float(right))]


@reward(steps=True)
def step_scores_in_data(trajectory: Trajectory, *, column: str = "scores") -> list[tuple[int, float]] | Score:
    """At the ends of the steps of a reply of the model `recorded`, their scores in this column of the problem.

    The column holds a list of scores for each of its replies, which stand in steps: of a process reward model that has read them.
    """
    scores = _of_reply(trajectory, column)
    if not isinstance(scores, list) or len(scores) != len(trajectory.steps) or not scores:
        return Score(None, why=f"the column {column} has no score for each of the reply's {len(trajectory.steps)} steps")
    return [(at, float(score)) for at, score in zip(trajectory.steps, scores, strict=True)]


@reward
def verdict_in_data(trajectory: Trajectory, *, column: str = "right") -> Score:
    """Whether a reply of the model `recorded` is right by this column of the problem, which holds a verdict for each of them."""
    verdict = _of_reply(trajectory, column)
    return Score(None, why=f"the column {column} has no verdict on this reply") if verdict is None else Score(float(verdict))


def _of_reply(trajectory: Trajectory, column: str) -> Any:
    """What a column holds of this recorded reply; None where it holds nothing."""
    values, path = trajectory.problem.meta.get(column), trajectory.path
    return values[path[0]] if isinstance(values, list) and path and path[0] < len(values) else None
