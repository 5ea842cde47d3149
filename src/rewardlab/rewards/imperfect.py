"""A judge of known quality: how good must a scorer be, before a search or a vote by it pays?"""

from __future__ import annotations

import math
from statistics import NormalDist

from rewardlab.core import Group, Run, Score, Scores, Trajectory, seed_of
from rewardlab.core.domain import Auc
from rewardlab.errors import RewardlabError

from .reward import reward

NORMAL = NormalDist()


@reward(over="groups")
def imperfect(groups: list[Group], run: Run, *, auc: Auc = 0.8) -> Scores:
    """The probability that a reply is right, as a judge says it who ranks right replies above wrong ones with probability `auc`.

    The judge sees the verdict of the task's verifier through normal noise, z ~ N(d / 2, 1) where it is right and N(-d / 2, 1)
    where it is wrong, with d = sqrt(2) Phi^-1(auc), and says the probability that follows from z: 1 / (1 + exp(-d z)). So it is
    calibrated where half of the replies are right. The noise belongs to problem and reply: the judge errs in the same way
    whenever it reads the same reply, and asking it again does not help.
    """
    if run is None or run.verify is None:
        raise RewardlabError("imperfect() blurs the verdicts of the task's verifier, and this run has none: name a task")
    distance = math.sqrt(2) * NORMAL.inv_cdf(auc)
    verdicts = run.verdicts(groups)
    return [[_said(t, s, distance, run.seed) for t, s in zip(*rows, strict=True)] for rows in zip(groups, verdicts, strict=True)]


def _said(trajectory: Trajectory, verdict: Score, distance: float, seed: int) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    # from (0, 1): a seed of 63 bits is at most 2^63 - 1, and half a step keeps both ends out
    uniform = (seed_of("imperfect", seed, trajectory.problem.key, trajectory.reply) + 0.5) / 2**63
    z = (distance if verdict.value >= 1.0 else -distance) / 2 + NORMAL.inv_cdf(uniform)
    return Score(1 / (1 + math.exp(-distance * z)), why=f"a judge of a verdict of {verdict.value:g}")
