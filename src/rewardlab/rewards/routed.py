"""Rewards that are asked only where the prompt calls for them."""

from __future__ import annotations

import re

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward, reward


@reward(over="groups")
def routed(groups: list[Group], run: Run, *, to: Reward, when: str = "", otherwise: float = 0.5) -> Scores:
    """The reward `to` for problems whose prompt contains the regular expression `when`, in any case; `otherwise` for all others.

    Where it is not asked, `to` is not called. Where it gives no verdict it pays `otherwise` too, so that the other rewards of the
    reply still count. The share of problems that were sent to it is logged as routed/NAME.
    """
    try:
        pattern = re.compile(when, re.IGNORECASE)
    except re.error as e:
        raise RewardlabError(f"routed: {when!r} is not a regular expression: {e}") from e
    asked = [g for g, group in enumerate(groups) if group and pattern.search(group[0].problem.question)]
    judged = dict(zip(asked, to([groups[g] for g in asked], run) if asked else [], strict=True))
    if run is not None:
        run.log(f"routed/{to.label}", len(asked) / max(1, len(groups)))
    return [[_score(s, otherwise) for s in judged.get(g, [None] * len(group))] for g, group in enumerate(groups)]


def _score(score: Score | None, otherwise: float) -> Score:
    if score is None:
        return Score(otherwise, why="not asked")
    return Score(otherwise, why=f"no verdict: {score.why}") if score.total is None else Score(score.total, why=score.why)
