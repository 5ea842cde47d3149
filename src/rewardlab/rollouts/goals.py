"""Pairs of replies conditioned on a goal: which of the two is better depends on the score that the prompt asks for."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeInt, PositiveInt
from rewardlab.text.filled import filled


@rollout(wraps="inner", groups=lambda **_: 2)
def under_both_goals(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, told: str = "Score: {goal}.", digits: NonNegativeInt = 1,
    attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """Each pair of `inner` twice: with the score of one reply as the goal, that one is preferred; with the other's, the other.

    by: the reward that scores replies.  told: the system message, in which {goal} is the score, rounded to `digits`.  Pairs of
    equal scores, as they would be told, and pairs without a score teach nothing under a goal; further problems replace them,
    `attempts` times at most. Logged: scored_apart, the share of pairs that were kept.
    """
    made: list[Group] = []
    wanted, looked_at = 2 * len(problems), 0
    for _ in range(attempts):
        looked_at += len(problems)
        groups = inner(problems, run)
        for group, scores in zip(groups, by(groups, run), strict=True):
            made += _both(group, [s.total for s in scores], run, told, digits)
        # outside of training there are no further problems to ask for
        if len(made) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems((wanted - len(made)) // 2)
    if not made:
        raise NothingKept(f"none of {looked_at} pairs has two replies of different scores by {by}: their prompts have no goals")
    run.log("scored_apart", len(made) / 2 / looked_at)
    return made


def _both(group: Group, scores: list[float | None], run: Run, told: str, digits: int) -> list[Group]:
    if len(group) != 2:
        raise RewardlabError(f"goals are told for pairs of replies; the rollout gives {len(group)} replies to a problem")
    goals = [None if score is None else f"{round(score, digits):g}" for score in scores]
    if None in goals or goals[0] == goals[1]:
        return []
    return [
        [reprompted(t, t.problem.told(filled(told, goal=str(goal))), run) for t in order]
        for goal, order in ((goals[0], group), (goals[1], group[::-1]))
    ]


def reprompted(t: Trajectory, problem: Problem, run: Run) -> Trajectory:
    """The same decisions after the prompt of another problem. Raises RewardlabError where the model's context has no room."""
    (prompt,) = run.policy.read([Trajectory(problem)], [problem.prompt])
    before, *after = t.turns
    shift = len(prompt) - len(before.ids)
    moved = replace(t, problem=problem, turns=(*prompt.turns, *after), steps=tuple(at + shift for at in t.steps))
    run.policy.check_fits(moved, 0)
    return moved
