"""V0.5: the baseline is a value model's prior, drawn to the group's mean the further the two are apart, with more replies there.

    s^2 = V (1 - V) / n,    w = min(1, s^2 / (mean r - V)^2),    b = w V + (1 - w) mean r,    A_i = r_i - b
    while |mean r - V| > s and n < N: as many replies again to that prompt

V is said before anything is sampled, so it has no variance, but it may be wrong; the mean of four replies is right on average, and
varies. w gives the least squared error of a mixture, s^2 / (s^2 + bias^2), with the bias estimated by the distance beyond chance.
That V lies within a standard error of the mean is the test of V; where it fails, the prompt is given further replies.

Zhang et al. 2026, arXiv:2603.10848 (abstract, summaries; no code was found). (inferred): the estimate of the bias, s under V, which
counts as .05 from 0 and 1 at least, one standard error as the test's bound, doubling the replies up to N = 16, no division by the
deviation. V is a column, or any reward that is asked about the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Credit, Group, Problem, Recipe, Rollout, Run, Score, Trajectory, credit, measure, rollout
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import paid_at_the_end
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.monte_carlo import sampled_pass_rate
from rewardlab.rewards.recorded import number_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat, PositiveInt

# ---- What was thought of a problem before its replies were seen, against what they earned ----------------------------

PRIOR = "prior"
"""The column that says what a problem's replies are thought to earn on average, from 0 to 1."""
FLOOR = 0.05
"""Standard errors are those of a prior at least this far from 0 and from 1: a sure one has none, and could not be tested."""


def squared_deviation(earned: Sequence[float], prior: float) -> float:
    """The square of (mean - prior) in standard errors of the mean, were the prior true of rewards of 0 and 1."""
    p = min(max(prior, FLOOR), 1 - FLOOR)
    return (sum(earned) / len(earned) - prior) ** 2 / (p * (1 - p) / len(earned))


def is_doubted(earned: Sequence[float], prior: float | None, z: float) -> bool:
    """Whether the mean of what replies earned is more than z standard errors away from the prior."""
    return prior is not None and len(earned) > 0 and squared_deviation(earned, prior) > z * z


def shrunk(earned: Sequence[float], prior: float | None, z: float) -> float:
    """w prior + (1 - w) mean, w = min(1, z^2 / squared deviation): the prior alone while it is not doubted, ever less of it after.

    With z = 1 this w is that of the least squared error, s^2 / (s^2 + bias^2), where bias^2 is put at (mean - prior)^2 - s^2, or at
    0 if that is below 0; s is the standard error.
    """
    mean = sum(earned) / len(earned)
    if prior is None:
        return mean
    deviation = squared_deviation(earned, prior)
    w = 1.0 if deviation <= z * z else z * z / deviation
    return w * prior + (1 - w) * mean


# ---- Credit relative to what was thought of a problem before it was answered -----------------------------------------


@credit
def subtract_shrunk_mean(a: Tensor, batch: Batch, run: Run, *, z: PositiveFloat = 1.0) -> Tensor:
    """Subtract from each event the mean of the group's events, drawn to the prior in its problem's meta["prior"] (`shrunk`).

    For outcome rewards from 0 to 1. A group without a prior has its mean as its baseline.
    """
    return _less_baseline(a, batch, lambda earned, prior: shrunk(earned, prior, z))


@credit
def subtract_prior(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract from each event the prior in its problem's meta["prior"], whatever the replies earned; without one, their mean."""
    return _less_baseline(a, batch, lambda earned, prior: sum(earned) / len(earned) if prior is None else prior)


def _less_baseline(a: Tensor, batch: Batch, baseline: Callable[[list[float], float | None], float]) -> Tensor:
    out = torch.zeros_like(a)
    for g in range(batch.groups):
        here = batch.rewarded & (batch.group == g)[:, None]
        if bool(here.any()):
            problem = batch.rows[int((batch.group == g).nonzero()[0])][0].problem
            out = torch.where(here, a - baseline(a[here].tolist(), problem.meta.get(PRIOR)), out)
    return out


# ----------------------------------------------------------------------------------------------------------------------
#
# How near the baselines that credits subtract come to what a prompt's replies earn on average; nothing is learnt.


@measure
def baseline_error(
    problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Rollout, rollouts: dict[str, Rollout],
    credits: dict[str, Credit],
) -> dict[str, float]:  # fmt: skip
    """error.X: mean square of (baseline - true mean reward) over problems, for the rollout and the credit of that name.

    The true mean is that of the replies that `truth` samples; its own variance is subtracted, so that an exact baseline has an
    error of 0 on average. The baseline is what the credit takes from a group's rewards, on average over its replies.
    replies.X: replies per problem.  n: problems.  Problems without a verdict are left out, under the rollouts that miss one.
    """
    if set(rollouts) != set(credits):
        raise RewardlabError(f"baseline_error compares rollouts and credits of one name: {sorted(rollouts)} and {sorted(credits)}")
    known = _means(truth(list(problems), run), reward, run)
    found: dict[str, float] = {}
    for name, play in rollouts.items():
        groups = play(list(problems), run)
        pairs = zip(groups, reward(groups, run), known, strict=True)
        errors = [e for group, scores, true in pairs if true and (e := _error(group, scores, true, credits[name], run)) is not None]
        found |= {f"error.{name}": float(np.mean(errors)) if errors else float("nan")}
        found |= {f"replies.{name}": float(np.mean([len(group) for group in groups]))}
    return {**found, "n": float(len(known) - known.count(None))}


def _means(groups: list[Group], reward: Reward, run: Run) -> list[tuple[float, float] | None]:
    """The mean of what each group earns, and the square of its standard error."""
    earned = [[s.total for s in row if s.total is not None] for row in reward(groups, run)]
    return [(float(np.mean(r)), float(np.var(r, ddof=1)) / len(r)) if len(r) > 1 else None for r in earned]


def _error(group: Group, scores: list[Score], true: tuple[float, float], credit: Credit, run: Run) -> float | None:
    """The square of (baseline - true mean), less the square of the latter's standard error; None without a verdict."""
    judged = [(t, s.total) for t, s in zip(group, scores, strict=True) if s.total is not None and t.mask.any()]
    if not judged:
        return None
    rows, paid = [t for t, _ in judged], [float(r) for _, r in judged]
    batch = paid_at_the_end(rows, paid, len(rows), run.policy.device)
    batch.rows = judged
    left = credit(batch.reward, batch, run)[batch.rewarded]
    mean, squared_error = true
    return float((np.mean(paid) - float(left.mean()) - mean) ** 2 - squared_error)


# ---- More replies to those problems whose first replies contradict what was expected of them -------------------------


@rollout(inner="of")
def adaptive_resampling(
    problems: list[Problem], run: Run, *, of: Rollout, prior: Reward, reward: Reward | None = None, z: PositiveFloat = 1.0,
    most: PositiveInt = 16,
) -> list[Group]:  # fmt: skip
    """The groups that `of` samples, and, as long as a group contradicts its prior, as many replies again, up to `most` in all.

    prior: what a problem's replies are thought to earn on average, from 0 to 1; it is asked about the problem, without any reply.
    reward: what they earn; None: the task's verifier.  A group contradicts its prior where its mean reward is more than `z`
    standard errors away, as if the prior were true (`is_doubted`). Problems without a prior are not doubted. The prior stands in
    the rows' problem.meta["prior"], for the credit.  Logs the share of problems doubted, and replies per problem.
    """
    said = _priors(problems, prior, run)
    groups = of([_told(p, v) for p, v in zip(problems, said, strict=True)], run)
    doubts = open_groups = _contradicting(groups, range(len(groups)), reward, z, run)
    while open_groups := [g for g in open_groups if len(groups[g]) < most]:
        # by the sampler itself: what filters groups around it may give back fewer than were asked for, or others
        again = of.innermost([groups[g][0].problem for g in open_groups], run)
        for g, more in zip(open_groups, again, strict=True):
            groups[g] = [replace(t, path=(i,)) for i, t in enumerate([*groups[g], *more][:most])]
        open_groups = _contradicting(groups, open_groups, reward, z, run)
    run.log("doubted", len(doubts) / max(1, len(groups)))
    run.log("replies_per_problem", sum(map(len, groups)) / max(1, len(groups)))
    return groups


def _priors(problems: list[Problem], prior: Reward, run: Run) -> list[float | None]:
    # a reward is asked about trajectories: these have a problem, and nothing that was said
    scores = prior([[Trajectory(p)] for p in problems], run)
    found = [row[0].total for row in scores]
    if problems and all(v is None for v in found):
        raise RewardlabError(f"{prior} says nothing of any of {len(problems)} problems: {scores[0][0].why or 'no reason given'}")
    return found


def _told(problem: Problem, prior: float | None) -> Problem:
    return problem if prior is None else replace(problem, meta={**problem.meta, PRIOR: min(1.0, max(0.0, prior))})


def _contradicting(groups: list[Group], which: Sequence[int], reward: Reward | None, z: float, run: Run) -> list[int]:
    """Indices of the groups whose rewards contradict their prior."""
    asked = [groups[g] for g in which]
    scores = (reward(asked, run) if reward else run.verdicts(asked)) if asked else []
    known = [[s.total for s in row if s.total is not None] for row in scores]
    return [g for g, row in zip(which, known, strict=True) if is_doubted(row, groups[g][0].problem.meta.get(PRIOR), z)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def v0_5(base: Recipe | None = None, *, prior: Reward | None = None, n: int = 4, most: int = 16, z: float = 1.0) -> Recipe:
    """prior: V; None: the column pass_rate.  n: replies at first.  most: N.  z: standard errors beyond which V is doubted."""
    base = base or grpo(n=n)
    return base.but(
        rollout=adaptive_resampling(
            of=base.required("rollout"), prior=prior or number_in_data(), reward=base.reward, z=z, most=most
        ),
        credit=subtract_shrunk_mean(z=z) >> to_go(),
    )


ASTRAY = sampled_pass_rate(n=16, astray=0.25)
FOUR = independent(n=4)
ONCE, AGAIN = (adaptive_resampling(of=FOUR, prior=ASTRAY, most=most) for most in (4, 16))
fidelity = "reading"
left_out = (
    "the value model V_0 itself, which reads how the policy has done on other prompts: a column or a reward says what it would say"
)
data = Data(
    answer="the gold answer",
    pass_rate=Column("the share of replies thought to be right, from 0 to 1, by an earlier measurement"),
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60", "pass_rate": 0.8},
        {
            "prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$?",
            "answer": "\\frac{3}{4}",
            "pass_rate": 0.4,
        },
    ],
)
check = Check(
    says="with a prior that is wrong about a quarter of the prompts the baseline errs less than the mean of as many replies, four",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="error.shrunk", direction="lower", margin=0.008,
    against="error.mean", settings={"prior": ASTRAY},
    by=baseline_error(
        reward=correct(), truth=independent(n=64), rollouts={"shrunk": ONCE, "again": AGAIN, "mean": FOUR, "prior": ONCE},
        credits={"shrunk": subtract_shrunk_mean(), "again": subtract_shrunk_mean(), "mean": center(), "prior": subtract_prior()},
    ),
    problems=150, steps=1, fault=Within("error.prior", low=0.03, says="squared error of the prior alone"), learns=None,
    # the mean reads four replies, and the other those and the prior
    sanity=True,
    tried="100 problems, one seed: .016 shrunk, .006 with further replies (7.6 a prompt), .036 the mean, .073 the prior",
    finding="the baseline's squared error is .024 with the prior and four replies, .034 by the mean of four, .110 by the prior "
    "alone, and .013 with further replies where the prior is doubted (8 a prompt). The prior is measured by 16 replies, so it "
    "knows more",
)  # fmt: skip
baseline = "grpo"
