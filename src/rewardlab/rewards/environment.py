"""Rewards from the environment."""

from __future__ import annotations

from itertools import dropwhile

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveFloat


@reward(steps=True)
def paid(trajectory: Trajectory) -> list[tuple[int, float]]:
    """Every reward of the environment, at the position before the message that brought it."""
    return trajectory.paid


@reward
def final_state(trajectory: Trajectory) -> Score:
    """1 where the last command of an episode in `terminal` left a state that passes the tests, else 0.

    It is the sum of what the environment paid. No verdict where the sandbox failed at a command, or an answer paid nothing.
    """
    # what comes before the first reply is the prompt
    begun = dropwhile(lambda turn: turn.author is None, trajectory.turns)
    answers = [turn for turn in begun if turn.author is None]
    if any(turn.reward is None for turn in answers):
        return Score(None, why="the sandbox failed at a command, or the environment does not test what commands do")
    return Score(float(sum(turn.reward or 0.0 for turn in answers)))


@reward(over="groups")
def found_labels(groups: list[Group], run: Run) -> Scores:
    """The step labels that a rollout found while it sampled, as in `error_bisection_tree`; at the last step, the verdict.

    It is carried as rewards of an environment are. No verdict where there is neither.
    """
    pairs = [zip(*both, strict=True) for both in zip(groups, run.verdicts(groups), strict=True)]
    return [[_found(t, s) for t, s in row] for row in pairs]


def _found(t: Trajectory, verdict: Score) -> Score:
    last = [] if verdict.value is None or not t.steps else [(t.steps[-1], float(verdict.value >= 1.0))]
    labels = [*t.paid, *last]
    return Score(steps=labels) if labels else Score(None, why=verdict.why or "the rollout says nothing of its steps")


@reward
def calls_made(trajectory: Trajectory, *, each: float = 0.1, max_reward: PositiveFloat = 1.0) -> float:
    """`each` for every reply that the environment answered (all but the last), at most `max_reward`."""
    return min(each * max(0, len(trajectory.ends) - 1), max_reward)


def earned_by(groups: list[Group], run: Run) -> list[float | None]:
    """What the environment paid each episode in all; where it pays nothing, as tools do, the task's verdict; None without one."""
    pays = [sum(pay for _, pay in t.paid) if t.paid else None for group in groups for t in group]
    if run.verify is None or None not in pays:
        return pays
    verdicts = [score.value for row in run.verdicts(groups) for score in row]
    return [said if pay is None else pay for pay, said in zip(pays, verdicts, strict=True)]
