"""RLCR: a reply states how likely its answer is to be right, and loses the Brier score of that confidence.

    r = 1[right] - (q - 1[right])^2,    q: the confidence that the reply states, from 0 to 1;    r = -2 where it states none

With a reward for being right alone, guessing costs nothing and a confidence means nothing. The loss is a proper scoring rule, so q
is best at the chance of being right; it is bounded, so being right pays more whatever q is: with an unbounded one (`rule="log"`) a
sure wrong answer can be worth more than a doubtful right one.

Damani et al. 2025, arXiv:2507.16806. The -2 is that of the released code (damanimehul/RLCR, read in the copy pranavdulepet/RLCR,
f062dce), which pays .5 for the form, .5 for a right answer, .5 (1 - Brier), and nothing without the form: twice its reward, less 2,
is r. As in its configurations (configs/Qwen-7B/hotpot and math/RLCR.yaml) n = 32 at temperature 0.7, there is no KL term, and the
advantage is not divided by the standard deviation: in a group that is all wrong, small differences in q would weigh as much as
being right does elsewhere, and q falls to 0, where a right answer pays nothing. A vote that weighs answers by their confidence, the
paper's use of it at test time, is `weighted_vote` with the reward `confidence()`.

The policy must state confidences ("Answer: 36", then "Confidence: 0.7"), so ask for them with --system.
"""

from __future__ import annotations

import math
from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.calibration import calibration
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.text.confidences import stated_confidence

# ---- Rewards for saying how likely an answer is to be right ----------------------------------------------------------

SURE = 1e-3
"""How far from 0 and 1 the logarithmic rule takes a confidence to be, since its loss is unbounded there."""
WORST = {"brier": 2.0, "log": 2.0 - math.log(SURE)}
"""Beside 1 for a right answer: what a reply without a confidence loses, more than any that states one."""


@reward
def states_confidence(trajectory: Trajectory) -> Score:
    """1 where the reply states a confidence from 0 to 1: "Confidence: 0.7", "Confidence: 70%", <confidence>0.7</confidence>."""
    stated = stated_confidence(trajectory.reply)
    return Score(float(stated is not None), why="no confidence stated" if stated is None else f"confidence {stated:g}")


@reward
def confidence(trajectory: Trajectory) -> float:
    """The confidence stated in the reply; 0 without one. As the weight of a vote it gives a confidence-weighted one."""
    return stated_confidence(trajectory.reply) or 0.0


@reward(over="groups")
def calibration_loss(groups: list[Group], run: Run, *, rule: Literal["brier", "log"] = "brier") -> Scores:
    """The loss of the stated confidence q under a proper scoring rule; c is 1 where the reply is right, else 0.

    rule: "brier", (q - c)^2, from 0 to 1; or "log", -log(1 - |q - c|), which is cut off at 6.9.  A reply that states no confidence
    loses 2 + c (log: 8.9 + c): beside a reward of c it is worth as little if it is right. No verdict gives no loss.
    """
    verdicts = correct()(groups, run)
    return [[_loss(t, v, rule) for t, v in zip(group, row, strict=True)] for group, row in zip(groups, verdicts, strict=True)]


def _loss(trajectory: Trajectory, verdict: Score, rule: str) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    stated, right = stated_confidence(trajectory.reply), float(verdict.value >= 1.0)
    if stated is None:
        return Score(WORST[rule] + right, why="no confidence stated")
    off = abs(stated - right)
    return Score(off**2 if rule == "brier" else -math.log(max(SURE, 1 - off)), why=f"confidence {stated:g}")


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def rlcr(
    base: Recipe | None = None, *, weight: float = 1.0, rule: Literal["brier", "log"] = "brier", n: int = 32,
    temperature: float = 0.7,
) -> Recipe:  # fmt: skip
    """weight: of the calibration loss, beside 1 for a right answer.  rule: the scoring rule, "brier" or "log".  n, temperature: of
    grpo.
    """
    base = base or grpo(n=n, temperature=temperature).but(credit=center() >> to_go())
    reward = (base.reward or correct()) - weight * calibration_loss(rule=rule)
    return base.but(reward=reward, measure=calibration(rollout=independent(n=1)))


fidelity = "core"
left_out = (
    "the form that is asked for, <think>, <answer>, <analysis> and <confidence> in this order: a confidence in any form is enough; "
    "leaving out replies that are cut off, as on mathematics there; the mean over tokens (here over replies, as GRPO's); and the "
    "start after SFT on such replies, of one of its models"
)
data = Data(
    answer="the gold answer",
    rows=[
        {
            "prompt": "Who wrote Faust? End with Answer: NAME and Confidence: a number from 0 to 1.",
            "answer": "Goethe",
        },
        {"prompt": "What is $17 \\cdot 23$? End with \\boxed{}, then Confidence: and a number from 0 to 1.", "answer": "391"},
    ],
)

AS_GRPO = {"n": 8, "temperature": 1.0}

claim = Claim(
    says="stated confidences are better calibrated than with GRPO after equal updates, at the same accuracy",
    versus="grpo", task="ambiguous:readings=[1,2]", measure="brier", direction="lower", margin=0.018,
    settings=AS_GRPO, by=calibration(rollout=independent(n=1)), steps=80, guard=Within("pass@1", low=-0.03),
    fault=Within("ece", low=0.1, says="expected calibration error, where confidence is not paid"),
    moved=Within("ece", high=-0.03, says="expected calibration error, less that of GRPO"), learns=None,
    tried="readings=[1,3], where the differences of three development seeds lay .10 apart; 40 and 80 steps here (+.025, +.035)",
    finding="stated confidences are 10 points off on average (ECE; 22 before, 23 with GRPO) and the Brier score is .25, against "
    ".30 before and .31; both are right on 62%. They still do not tell right from wrong answers (AUROC .50): the level was "
    "learnt alone",
    version=2, replaces="its fault was confidence above accuracy; what is not paid drifts either way, once in five pairs far below",
)  # fmt: skip
