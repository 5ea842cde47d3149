"""Quark: several rewards on the scale of what the reference policy earns, weighed by how weak, how risky, how redundant each is.

    z_k = (r_k - mu_k) / (sigma_k + eps),    mu, sigma: of the frozen reference policy's replies;    r = sum_k w_k z_k
    w_k proportional to weakness_k * risk_k * (1 - redundancy_k), renewed each step

Rewards of several kinds (ability, knowledge, feedback of users, form) differ in scale, and the widest would lead alone. Statistics
of the present batch would make every reward as important as before when it is nearly learnt; frozen ones let it fade. The weights
turn to what still falls short, first where a failure costs most, and count rewards that say the same once.

Xu et al. 2026, arXiv:2602.11661: normalisation by frozen statistics and the three factors are the paper's, their formulas are
(inferred): weakness is the distance of the mean z_k from the best reply of the step, 1 - redundancy_k is 1 / (1 + the sum of the
positive correlations with the other rewards), and the weights have the mean 1. The statistics are those of the first step, whose
replies the reference itself gives, since the policy has not been changed yet; those of a reward that is the same for all of them
are of the first step in which it varies. Left out: the paper's own rewards and its diagnosis of metrics, which are of its products.
`adaptive=False` is the plain sum.

Data: prompts, and what the rewards need. rewards="correct() + 3 * mine.py:safe": a sum, in which a weight is a reward's risk.
"""

from typing import Any

from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import normalised
from rewardlab.rewards.balance import balanced, summands
from rewardlab.rewards.format import answer_given
from rewardlab.rewards.length import tokens
from rewardlab.rewards.rationale_coverage import rationale_coverage
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.verifiers.choice.rationale import rationale_agrees


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


WANTED = correct() + rationale_agrees() + rationale_coverage()
OF_ALL_SCALES = {"rewards": WANTED + tokens(), "problems": 8}  # tokens: of another scale, and nearly the same as covered
claim = Claim(
    says="more replies are right, consistent and complete at once than with the sum of rewards on different scales",
    versus="quark_medical_alignment", task="choices", measure="all", direction="higher", margin=0.05, settings=OF_ALL_SCALES,
    versus_settings={**OF_ALL_SCALES, "adaptive": False}, by=term_means(reward=WANTED), steps=40,
    guard=Within("correct", low=-0.03),
    fault=Within("rationale_agrees", high=0.85, says="replies whose rationale leads to their answer"), learns=None,
    finding="on both sides right replies fall while they learn, from .27 to below .1: neither earns what is wanted",
)  # fmt: skip
baseline = "grpo"
