"""The verifier of tasks from verifiers: each environment's own rubric."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.core.score import Term
from rewardlab.envs.verifiers.episodes import NEEDED, outcomes
from rewardlab.envs.verifiers.shapes import Outcome
from rewardlab.rewards.reward import reward

NAME = "verifiers_reward"


@reward(over="group")
def verifiers_reward(group: list[Trajectory]) -> list[Score]:
    """The weighted sum of the rubric's reward functions; the value of each, and of metrics, is logged by its name.

    An episode that is not at its end (its turns are used up, or the context) is ended as if the context were. Right is a reward of
    at least 1. No verdict: the environment, or one of its reward functions, raised an error; or the rows are not those of its task.
    """
    if not group or any(group[0].problem.meta.get(name) is None for name in NEEDED):
        return [Score(None, why=f"the problem does not say its {', '.join(NEEDED)}") for _ in group]
    return [_score(outcome) for outcome in outcomes(group[0].problem, [t.replies for t in group])]


def _score(outcome: Outcome) -> Score:
    if outcome.reward is None:
        return Score(None, why=outcome.why)
    parts = {f"{NAME}.{name}": Term(value, weight=None) for name, value in outcome.parts.items()}
    return Score(terms={NAME: Term(outcome.reward), **parts})
