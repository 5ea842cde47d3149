"""A judge of known quality: how accurate must a scorer be before search or voting with it pays?"""

from __future__ import annotations

import math

from rewardlab.core import Group, Run, Score, Scores, Trajectory, uniform_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.noise import FRESH, NORMAL, error_of
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import Auc, PositiveFloat, PositiveInt, Share


@reward(over="groups")
def imperfect(groups: list[Group], run: Run, *, auc: Auc = 0.8, inner: Reward | None = None, fresh: Share = FRESH) -> Scores:
    """The probability that a reply is right, by a simulated judge that ranks right replies above wrong ones with probability `auc`.

    The judge sees the verdict of the task's verifier through normal noise, z ~ N(d / 2, 1) where it is right and N(-d / 2, 1)
    where it is wrong, with d = sqrt(2) Phi^-1(auc), and says the probability that follows from z: 1 / (1 + exp(-d z)). So it is
    calibrated where half of the replies are right. The noise belongs to problem and reply: the judge errs in the same way
    whenever it reads the same reply, and asking it again does not help.
    fresh: share of the noise's variance that is new at each line, 0 to 1; the rest is what it was a line before, so that what reads
    more of a reply does not average the noise away (rewardlab.rewards.noise). 1: each beginning has noise of its own.
    inner: a reward whose 1 is right, and all else wrong, in the verifier's place: an exact judge of beginnings, such as
    `unbroken()`, makes a process reward model of known quality.
    """
    if inner is None and (run is None or run.verify is None):
        raise RewardlabError("imperfect() blurs the verdicts of the task's verifier, and this run has none: name a task")
    distance = math.sqrt(2) * NORMAL.inv_cdf(auc)
    verdicts = run.verdicts(groups) if inner is None else inner(groups, run)
    return [
        [_said(t, s, distance, fresh, run.seed) for t, s in zip(*rows, strict=True)] for rows in zip(groups, verdicts, strict=True)
    ]


def _said(trajectory: Trajectory, verdict: Score, distance: float, fresh: float, seed: int) -> Score:
    value = verdict.total
    if value is None:
        return Score(None, why=verdict.why)
    right = value >= 1.0
    z = (distance if right else -distance) / 2 + error_of(("imperfect", seed, right), trajectory, fresh)
    return Score(1 / (1 + math.exp(-distance * z)), why=f"a judge of a verdict of {value:g}")


@reward(over="groups", relative=True)
def votes(groups: list[Group], run: Run, *, inner: Reward, voters: PositiveInt = 8, noise: PositiveFloat = 1.0) -> Scores:
    """The number of voters that prefer a reply to another one of its group, ties half, averaged over the others.

    A voter prefers a reply with log-odds of the difference in the reward `inner` / noise: in a pair votes are sampled as Bradley
    and Terry say, and add up to `voters`. A voter errs in the same way whenever it reads the same reply; whole replies are
    compared, never beginnings, so each has an error of its own. Replies without a verdict by
    `inner` get no vote, nor does one that has no other to be compared with; equal texts are ties.
    """
    return [[Score(x) for x in _votes(*rows, run.seed, voters, noise)] for rows in zip(groups, inner(groups, run), strict=True)]


def _votes(group: Group, scores: list[Score], seed: int, voters: int, noise: float) -> list[float | None]:
    known = {i: total for i, s in enumerate(scores) if (total := s.total) is not None}
    # the difference of two Gumbel errors is logistic
    liked = {i: [x / noise + _gumbel("votes", seed, v, group[i]) for v in range(voters)] for i, x in known.items()}
    won: list[float | None] = [None] * len(group)
    for i in known if len(known) > 1 else ():
        wins = [(a > b) + (a == b) / 2 for j in known if j != i for a, b in zip(liked[i], liked[j], strict=True)]
        won[i] = sum(wins) / (len(known) - 1)
    return won


def _gumbel(what: str, seed: int, voter: int, t: Trajectory) -> float:
    return -math.log(-math.log(uniform_of(what, seed, voter, t.problem.key, t.reply)))
