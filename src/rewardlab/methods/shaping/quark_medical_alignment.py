"""Quark: several rewards, normalised by the reference policy's and weighted by weakness, risk and redundancy.

    z_k = (r_k - mu_k) / (sigma_k + eps),    mu, sigma: of the frozen reference policy's replies;    r = sum_k w_k z_k
    w_k proportional to weakness_k * risk_k * (1 - redundancy_k), renewed each step

Rewards of several kinds (ability, knowledge, feedback of users, form) differ in scale, and the widest would lead alone. Statistics
of the present batch would make every reward as important as before when it is nearly learnt; frozen ones let it fade. The weights
turn to what still falls short, first where a failure costs most, and count rewards that say the same once.

Xu et al. 2026, arXiv:2602.11661: normalisation by frozen statistics and the three factors are the paper's, their formulas are
(inferred): weakness is the distance of the mean z_k from the best reply of the step, 1 - redundancy_k is 1 / (1 + the sum of the
positive correlations with the other rewards), and the weights have the mean 1. The statistics are those of the first step, whose
replies the reference itself gives, since the policy has not been changed yet; those of a reward that is the same for all of them
are of the first step in which it varies. `adaptive=False` is the plain sum.

rewards="correct() + 3 * mine.py:safe": a sum, in which a weight is a reward's risk.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import normalised
from rewardlab.rewards.format import answer_given
from rewardlab.rewards.length import tokens
from rewardlab.rewards.operator import operator
from rewardlab.rewards.rationale_coverage import rationale_coverage
from rewardlab.rewards.reward import Constant, Reward, Scaled, Sum
from rewardlab.rewards.task import correct
from rewardlab.verifiers.choice.rationale import rationale_agrees

# ---- Several rewards at once, each with a weight that follows how much it needs one ----------------------------------

Values = Sequence[float]


@operator(over="weights")
def balanced(*rewards: list[float], risk: tuple[float, ...] = ()) -> list[float]:
    """A sum of rewards whose weights are computed anew in each step, and have the mean 1:

    w_k proportional to  weakness_k * risk_k / (1 + sum over the others j of max(0, corr(r_k, r_j)))

    weakness_k: how far the mean reward of the step's rollouts is below the best of them, so that what is earned throughout has no
    weight.  risk: one number for each reward, 1 for each if left out.  The correlation is over the step's rollouts: two rewards
    that always agree weigh as much as one.  For rewards on one scale: `balanced(normalised(a, within="start"), ...)`.
    """
    if risk and (len(risk) != len(rewards) or min(risk) < 0 or not any(risk)):
        raise RewardlabError(f"balanced: risk has a number from 0 up for each of the {len(rewards)} rewards, one above 0: {risk}")
    importance = [_weakness(column) * r for column, r in zip(rewards, risk or [1.0] * len(rewards), strict=True)]
    raw = [x / (1 + shared) for x, shared in zip(importance, _agreement(rewards), strict=True)]
    # where every reward is earned throughout none is weak, and there is nothing to weigh them by
    return [len(raw) * x / sum(raw) for x in raw] if sum(raw) > 0 else [1.0] * len(rewards)


def _weakness(column: Values) -> float:
    return max(column) - statistics.fmean(column) if column else 0.0


def _agreement(columns: Sequence[Values]) -> list[float]:
    """For each column the sum of its positive correlations with the others; one that does not vary has none."""
    table = np.array(columns, float)  # (K, N)
    if table.size == 0:
        return [0.0] * len(columns)
    table = table - table.mean(1, keepdims=True)
    length = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, length, out=np.zeros_like(table), where=length > 1e-12)
    correlations = (unit @ unit.T).clip(min=0.0)
    return (correlations.sum(1) - correlations.diagonal()).tolist()


def summands(reward: Reward) -> list[tuple[float, Reward]]:
    """The rewards that a sum adds up, each with its weight, which is positive: of `-0.5 * a`, 0.5 and `-a`. No numbers."""
    if isinstance(reward, Sum):
        return [pair for x in reward._of for pair in summands(x)]
    if isinstance(reward, Scaled):
        by, inner = reward._of
        return [(abs(by) * weight, x if by > 0 else -x) for weight, x in summands(inner) if by]
    return [] if isinstance(reward, Constant) else [(1.0, reward)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def quark_medical_alignment(base: Recipe | None = None, *, rewards: Reward | None = None, adaptive: bool = True) -> Recipe:
    """rewards: a sum of at least two; a reward's weight in it is its risk. Without it the base's; a base with a single reward is
    paid for stating an answer too.  adaptive: whether they are normalised and weighed, or only added up.
    """
    base = base or grpo()
    given: Any = rewards or base.reward or correct()
    terms = summands(given)
    if len(terms) < 2:
        if rewards is not None:
            raise RewardlabError(f"quark_medical_alignment weighs several rewards against each other, and {given} is a single one")
        terms = [*terms, (1.0, answer_given())]
    if not adaptive:
        return base.but(reward=sum((weight * reward for weight, reward in terms), start=0))
    scaled = (normalised(reward, within="start") for _, reward in terms)
    return base.but(reward=balanced(*scaled, risk=tuple(weight for weight, _ in terms)))


fidelity = "reading"
left_out = (
    "the paper's own rewards (ability, knowledge, feedback of users, form) and its diagnosis of metrics, which are of its "
    "products: the rewards are a user's, and without any an answer that is right and one that is stated"
)
data = Data(
    answer="the gold answer; other columns are read by the rewards that are given",
    rows=[
        {"prompt": "Which vitamin does scurvy lack? A. C  B. D  C. K. End with Answer: and the letter.", "answer": "A"},
        {"prompt": "Which organ makes insulin? End with Answer: and one word.", "answer": ["pancreas", "the pancreas"]},
        {"prompt": "A child of 12 kg gets 15 mg of a drug per kg. How many mg is that?", "answer": "180"},
    ],
)

WANTED = correct() + rationale_agrees() + rationale_coverage()
OF_ALL_SCALES = {"rewards": WANTED + tokens(), "problems": 8}  # tokens: of another scale, and nearly the same as covered
claim = Claim(
    says="more replies are right, consistent and complete at once than with the sum of rewards on different scales",
    versus="quark_medical_alignment", task="choices", measure="all", direction="higher", margin=0.05, settings=OF_ALL_SCALES,
    versus_settings={**OF_ALL_SCALES, "adaptive": False}, by=term_means(reward=WANTED), steps=40,
    guard=Within("correct", low=-0.03),
    fault=Within("rationale_agrees", high=0.85, says="replies whose rationale leads to their answer"), learns=None,
    finding="2% of replies are right, consistent and complete before; 4% with the weights and 2% with the plain sum. Right answers "
    "fall from 38% to 8% and 5%: length, which both sides are paid for, takes over on either",
)  # fmt: skip
baseline = "grpo"
