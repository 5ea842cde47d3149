"""RLCR: a reply states how likely its answer is to be right, and loses the Brier score of that confidence.

    r = 1[right] - (q - 1[right])^2,    q: the confidence that the reply states, from 0 to 1;    r = -2 where it states none

With a reward for being right alone, guessing costs nothing and a confidence means nothing. The loss is a proper scoring rule, so q
is best at the chance of being right; it is bounded, so being right pays more whatever q is: with an unbounded one (`rule="log"`) a
sure wrong answer can be worth more than a doubtful right one.

Damani et al. 2025, arXiv:2507.16806. The -2 is that of the released code (damanimehul/RLCR, read in the copy pranavdulepet/RLCR,
f062dce), which pays .5 for the form, .5 for a right answer, .5 (1 - Brier), and nothing without the form: twice its reward, less 2,
is r. As in its script the advantage is not divided by the standard deviation: in a group that is all wrong, small differences in q
would weigh as much as being right does elsewhere, and q falls to 0, where a right answer pays nothing. A vote that weighs answers
by their confidence, the paper's use of it at test time, is `weighted_vote` with the reward `confidence()`.

Data: prompts and answers; the policy must state confidences ("Answer: 36", then "Confidence: 0.7"), so ask for them with --system.
"""

from typing import Literal

from rewardlab.core import Recipe
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.evals.calibration import calibration
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.confidence import calibration_loss
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def rlcr(base: Recipe | None = None, *, weight: float = 1.0, rule: Literal["brier", "log"] = "brier") -> Recipe:
    """weight: of the calibration loss, beside 1 for a right answer.  rule: the scoring rule, "brier" or "log"."""
    base = base or grpo().but(credit=center() >> to_go())
    reward = (base.reward or correct()) - weight * calibration_loss(rule=rule)
    return base.but(reward=reward, measure=calibration(rollout=independent(n=1)))


claim = Claim(
    says="stated confidences are better calibrated than with GRPO after equal updates, at the same accuracy",
    versus="grpo", task="ambiguous:readings=[1,2]", measure="brier", direction="lower", margin=0.018,
    by=calibration(rollout=independent(n=1)), steps=80, guard=Within("pass@1", low=-0.03),
    fault=Within("ece", low=0.1, says="expected calibration error, where confidence is not paid"),
    moved=Within("ece", high=-0.03, says="expected calibration error, less that of GRPO"), learns=None,
    tried="readings=[1,3], where the differences of three development seeds lay .10 apart; 40 and 80 steps here (+.025, +.035)",
    version=2, replaces="its fault was confidence above accuracy; what is not paid drifts either way, once in five pairs far below",
)  # fmt: skip
