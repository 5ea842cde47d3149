"""Multi-answer RL: one reply lists K distinct answers with confidences, and is rewarded for every right one.

    r = sum_i 1[a_i right] - mean_i (q_i - 1[a_i right])^2        over the K answers;   in stages:
    -2 unless there are K answers with a confidence each;   -1 unless all differ;   sum_i 1[a_i right] - 1 unless sum_i q_i <= 1

Where several answers may be right, a reward for one makes a policy give the likeliest alone, and asking it again brings the same;
here the second best is worth giving too. Confidences of answers of which one is right are chances that sum to 1 at most. With K = 1
it is RLCR; `calibrated=False` pays coverage alone, as if nothing were said of confidence (the paper's Multi-RLVR, beside its
Multi-RLCR).

Puri et al. 2026, arXiv:2603.24844. Stages, the mean of the squares and the advantage without the standard deviation are those of
the released code (ishapuri/multi_answer_rl 918e956, reward_fns.py; arguments.py 18d056e): .5 for the form, .5 for a right answer
among different ones, .5 (1 - mean) if they differ and the sum is at most 1: twice that, less 2, is r where one answer is right. Of
several right ones it counts one, or, by a switch, their number over K; the sum is the paper's (read in a summary of it). The base's
reward is replaced: it judges one answer.
"""

from __future__ import annotations

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.calibration import answer_sets
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.confidences import Stated, judged_answers, stated_answers

# ---- Rewards for replies that list several answers, each with a confidence (`text/confidences.py`) -------------------

ROUNDING = 1e-9
"""0.7 + 0.2 + 0.1 is not 1 in binary."""


@reward
def answers_listed(trajectory: Trajectory, *, k: PositiveInt, confidences: bool = True) -> Score:
    """1 where the reply lists exactly k answers, alike or not, and, with `confidences`, states one from 0 to 1 for each."""
    listed = stated_answers(trajectory.reply)
    if confidences and any(x.confidence is None for x in listed):
        return Score(0.0, why="an answer has no confidence")
    return Score(float(len(listed) == k), why=f"{len(listed)} answers")


@reward
def confidences_within(trajectory: Trajectory, *, total: PositiveFloat = 1.0) -> Score:
    """1 where the confidences that a reply states for its answers sum to at most `total`; 0 where an answer has none.

    total: 1 where one answer at most is right, since then their chances sum to no more.
    """
    stated = [x.confidence for x in stated_answers(trajectory.reply)]
    known = [q for q in stated if q is not None]
    inside = len(known) == len(stated) and sum(known) <= total + ROUNDING
    return Score(float(inside), why=f"confidences of {sum(known):g} in all")


@reward
def distinct_answers(trajectory: Trajectory, *, k: PositiveInt, confidences: bool = True) -> Score:
    """1 where the reply lists exactly k answers that all differ and, with `confidences`, states one from 0 to 1 for each."""
    listed = stated_answers(trajectory.reply)
    different = len({x.key for x in listed})
    if confidences and any(x.confidence is None for x in listed):
        return Score(0.0, why="an answer has no confidence")
    return Score(float(len(listed) == k == different), why=f"{len(listed)} answers, {different} of them different")


@reward(over="groups")
def answers_covered(groups: list[Group], run: Run) -> Scores:
    """The number of different right answers in a reply, by the task's verifier, which judges each on its own."""
    return [[Score(None if x is None else float(sum(ok for _, ok in x))) for x in row] for row in judged_answers(groups, run)]


@reward(over="groups")
def set_brier(groups: list[Group], run: Run) -> Scores:
    """The sum over a reply's different answers of (q - c)^2: q is the confidence stated for it, c whether it is right.

    An answer without a confidence adds 1.
    """
    return [[Score(None if x is None else sum(map(_squared, x))) for x in row] for row in judged_answers(groups, run)]


def _squared(judged: tuple[Stated, bool]) -> float:
    stated, right = judged
    return 1.0 if stated.confidence is None else (stated.confidence - right) ** 2


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@operator
def set_reward(listed: float, different: float, within: float, right: float, squares: float, *, k: int) -> float:
    """What a list of k answers earns: right of them are right, and `squares` is the sum of the squared errors of their confidences.

    listed, different, within: 1 where the list has its form, its answers differ, and its confidences sum to what they may.
    """
    if not listed:
        return -2.0
    if not different:
        return -1.0
    return right - (squares / k if within else 1.0)


def multi_answer_rl(base: Recipe | None = None, *, k: int = 3, calibrated: bool = True, total: float = 1.0) -> Recipe:
    """k: answers of a reply.  calibrated: whether their confidences count.  total: the most that they may sum to: 1 where one
    answer at most is right, k to leave them free.
    """
    base = base or grpo().but(credit=center() >> to_go())
    # without calibration an answer may be said twice: it counts once
    form = (answers_listed(k=k, confidences=calibrated), distinct_answers(k=k) if calibrated else 1.0)
    # without confidences no list gets what they would earn
    stated = (confidences_within(total=total), answers_covered(), set_brier()) if calibrated else (0.0, answers_covered(), 0.0)
    return base.but(reward=set_reward(*form, *stated, k=k), measure=answer_sets(rollout=independent(n=1)))


fidelity = "core"
left_out = (
    "the sections <think> and <analysis> of a reply; its 32 replies at temperature 0.7, and the mean over tokens: here GRPO's own "
    "number and temperature, and the mean over replies"
)

data = Data(
    prompt="a question that may have several answers, asking for k of them with a confidence each (or ask for them by --system)",
    answer="the right answer, or a list where several are right",
    rows=[
        {
            "prompt": "A child has a fever and a red rash. What may it be? Give three different diagnoses, the likeliest first, "
            "each as two lines: Answer: ... and Confidence: 0 to 1. The confidences sum to 1 at most.",
            "answer": ["measles", "scarlet fever"],
        },
        {
            "prompt": "Which city is the largest of its country, but not the capital? Give three different answers, each as "
            "two lines: Answer: ... and Confidence: 0 to 1. The confidences sum to 1 at most.",
            "answer": ["Istanbul", "Sydney", "Toronto", "Zurich"],
        },
    ],
)

claim = Claim(
    says="replies of several answers contain the right one more often than where GRPO pays for one answer, after equal updates",
    versus="grpo", task="ambiguous:difficulty=1,readings=4,answers=3,again=0.4",
    measure="coverage", direction="higher",
    margin=0.048, settings={"lr": 3e-4}, versus_settings={"lr": 3e-4}, by=answer_sets(rollout=independent(n=1)), steps=40,
    guard=Within("brier", high=0.03),
    fault=Within("unique", high=0.85, says="different answers among those listed"),
    moved=Within("distinct", low=0.2, says="different answers in a reply, more than with GRPO"), learns=None,
    tried="again=0.7, 40 steps at 3e-4, three seeds: 1.0 more different answers, the right one among them .10 less often; "
    "chains of two at 1e-4, 60 steps: -.042, sd .063",
    finding="Confidence becomes honest (Brier score from 0.44 to 0.18, with GRPO 0.45), and a reply lists 2.5 different answers, "
    "not 2.0; but lists with the right one fall on both sides, from 50% to 31% and 37%: answers are more varied and "
    "less often right.",
)  # fmt: skip
