"""V0.5: shrink a value model's prior towards the group mean as they disagree, and sample more replies where they do.

    s^2 = 1 / (4 k),    d^2 = max(0, (mean r - V)^2 - s^2),    w = d^2 / (d^2 + s^2),    b = w mean r + (1 - w) V,    A_i = r_i - b
    error(k) = d^2 s^2 / (d^2 + s^2);    while error(k) - error(k + 1) > c and k < N: one more reply to that prompt

V is said before anything is sampled, so it has no variance, but it may be wrong; the mean of k = 4 replies is right on average, and
varies. w gives the least squared error of a mixture, with the bias of V estimated by its distance beyond chance. s^2 is the most
that the mean of k rewards of 0 and 1 can vary. A mean within s is the test of V; where it fails, the prompt is given further
replies, as long as the next is worth its cost: c = .0039, for rewards of -1 and 1, which is about 1/16^2, so that few would go on
beyond N = 16.

Zhang et al. 2026, arXiv:2603.10848 (formulas as a detailed review quotes them; no code was found). (inferred): the error that a
further reply leaves, as d^2 stays; no division by the deviation. Here rewards are 0 and 1, so s^2 and c are a fourth of those. V is
a column, or any reward that is asked about the prompt.
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
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- What was thought of a problem before its replies were seen, against what they earned ----------------------------

PRIOR = "prior"
"""The column that says what a problem's replies are thought to earn on average, from 0 to 1."""
COST = 0.0039 / 4
"""What one more reply to a problem must save of the baseline's squared error, for rewards from 0 to 1."""


def variance(k: int) -> float:
    """Of the mean of k rewards of 0 and 1, at most."""
    return 1 / (4 * k)


def squared_bias(earned: Sequence[float], prior: float | None) -> float:
    """The square of (mean - prior) beyond the variance of the mean: 0 while the prior is not doubted, and without one."""
    if prior is None or not earned:
        return 0.0
    return max(0.0, (sum(earned) / len(earned) - prior) ** 2 - variance(len(earned)))


def shrunk(earned: Sequence[float], prior: float | None) -> float:
    """w mean + (1 - w) prior, w = bias^2 / (bias^2 + variance): the prior alone while it is not doubted, ever less of it after.

    Were these the true bias and variance, no other w would have a smaller squared error.
    """
    mean = sum(earned) / len(earned)
    if prior is None:
        return mean
    bias = squared_bias(earned, prior)
    w = bias / (bias + variance(len(earned)))
    return w * mean + (1 - w) * prior


def saved_by_another(earned: Sequence[float], prior: float | None) -> float:
    """How much smaller the squared error of `shrunk` would be with one reply more, the bias being what it is put at now."""
    bias, k = squared_bias(earned, prior), len(earned)
    if not bias:
        return 0.0
    now, then = (bias * variance(x) / (bias + variance(x)) for x in (k, k + 1))
    return now - then


# ---- Credit relative to what was thought of a problem before it was answered -----------------------------------------


@credit
def subtract_shrunk_mean(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the group mean, shrunk towards the prior in the problem's meta["prior"], from each event (`shrunk`).

    For outcome rewards from 0 to 1. A group without a prior has its mean as its baseline.
    """
    return _less_baseline(a, batch, shrunk)


@credit
def subtract_prior(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the prior in the problem's meta["prior"] from each event, whatever the rewards; without one, the group mean."""
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


@rollout(wraps="inner")
def adaptive_resampling(
    problems: list[Problem], run: Run, *, inner: Rollout, prior: Reward, reward: Reward | None = None,
    cost: NonNegativeFloat = COST, max_n: PositiveInt = 16,
) -> list[Group]:  # fmt: skip
    """The groups of `inner`, with further replies, one at a time and up to `max_n` in all, where a group contradicts its prior.

    prior: what a problem's replies are thought to earn on average, from 0 to 1; it is asked about the problem, without any reply.
    reward: what they earn; None: the task's verifier.  A group contradicts its prior where its mean reward is further away than
    chance may bring it (`squared_bias`), and gets another reply while that saves more than `cost` of the squared error of `shrunk`.
    Problems without a prior are not doubted. The prior stands in the rows' problem.meta["prior"], for the credit. A sampler without
    a setting `n` adds as many replies as it samples.  Logs the share of problems doubted, and replies per problem.
    """
    said = _priors(problems, prior, run)
    groups = inner([_told(p, v) for p, v in zip(problems, said, strict=True)], run)
    # by the sampler itself: what filters groups around it may give back fewer than were asked for, or others
    sampler = inner.innermost
    one = sampler.but(n=1) if "n" in sampler.settings else sampler
    earned = dict(enumerate(_earned(groups, reward, run)))
    doubted = sum(squared_bias(row, _prior_of(group)) > 0 for row, group in zip(earned.values(), groups, strict=True))
    while asked := [
        g for g, row in earned.items() if len(groups[g]) < max_n and saved_by_another(row, _prior_of(groups[g])) > cost
    ]:
        for g, more in zip(asked, one([groups[g][0].problem for g in asked], run), strict=True):
            groups[g] = [replace(t, path=(i,)) for i, t in enumerate([*groups[g], *more][:max_n])]
        earned = dict(zip(asked, _earned([groups[g] for g in asked], reward, run), strict=True))
    run.log("doubted", doubted / max(1, len(groups)))
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


def _prior_of(group: Group) -> float | None:
    return group[0].problem.meta.get(PRIOR)


def _earned(groups: list[Group], reward: Reward | None, run: Run) -> list[list[float]]:
    scores = (reward(groups, run) if reward else run.verdicts(groups)) if groups else []
    return [[s.total for s in row if s.total is not None] for row in scores]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def v0_5(base: Recipe | None = None, *, prior: Reward | None = None, n: int = 4, max_n: int = 16, cost: float = COST) -> Recipe:
    """prior: V; None: the column pass_rate.  n: replies at first.  max_n: N.  cost: c."""
    base = base or grpo(n=n)
    return base.but(
        rollout=adaptive_resampling(
            inner=base.required("rollout"), prior=prior or number_in_data(), reward=base.reward, cost=cost, max_n=max_n
        ),
        credit=subtract_shrunk_mean() >> to_go(),
    )


ASTRAY = sampled_pass_rate(n=16, astray=0.25)
FOUR = independent(n=4)
ONCE, AGAIN = (adaptive_resampling(inner=FOUR, prior=ASTRAY, max_n=most) for most in (4, 16))
fidelity = "core"
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
    "knows more. That run put the noise at V (1 - V) / 4, and doubled the replies",
)  # fmt: skip
baseline = "grpo"
