"""PROF: filter replies by consistency of process reward and outcome.

    score = (mean of the steps' process rewards - lambda [1 step, or H or more]) * (+1 if right, -1 if wrong)
    kept: m of n replies, the right ones and the wrong ones with the highest scores, as many of each as there are, up to m/2
    reward: the outcome alone

Right answers from flawed steps, and sound steps before a wrong answer, teach what is not true. A process reward model finds many
of them, but errs, and a policy that is paid by it learns its errors. As a filter it only chooses; what is chosen is paid by the
outcome.

Ye et al. 2025, arXiv:2509.03403, its PROF-BOTH: score, and m of n with as many right as wrong ones as there can be, from notes
on the paper and the README of Chenluye99/PROF, whose code is not stored. (inferred): n = 8, m = 4, lambda = 0 by default and H
= 30; that the outcome's advantage is normalised over the replies that are kept; that steps of which a judge says nothing, since
they follow the first wrong one, count 0. `process` may be any reward of steps (prm:PATH); without one a model says which steps are
right (`judge`), by default the policy as it was.
"""

from __future__ import annotations

import math

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Score, Trajectory, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.rewards import reward_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.critiques import noisy_critiques
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Groups of which only those replies are kept whose reasoning and whose outcome say the same ----------------------


@rollout(wraps="inner")
def consistent(
    problems: list[Problem], run: Run, *, inner: Rollout, process: Reward, keep: PositiveInt = 4, penalty: NonNegativeFloat = 0.0,
    max_steps: PositiveInt = 30,
) -> list[Group]:  # fmt: skip
    """Of each group of `inner`, `keep` replies: the right ones with the highest and the wrong ones with the lowest process values,
    half of each, or as near to that as possible.

    process: a reward of steps; a reply's process value is their mean, over all steps that the rollout marked, of which those
    without a reward count 0, less `penalty` where it has one step alone, or `max_steps` or more.  Verdicts are those of the task's
    verifier. Replies without one are dropped, unless fewer than `keep` have any; of those without a process value the others are
    preferred. Logs how many right and how many wrong replies are kept, per group.
    Ye et al. 2025, arXiv:2509.03403
    """
    groups = inner(problems, run)
    rows = zip(groups, run.verdicts(groups), process(groups, run), strict=True)
    kept = [
        _kept(group, verdicts, [_value(*pair, penalty, max_steps) for pair in zip(group, scores, strict=True)], keep)
        for group, verdicts, scores in rows
    ]
    for name, wanted in (("kept_right", True), ("kept_wrong", False)) if kept else ():
        counts = [sum(v.value is not None and (v.value >= 1) == wanted for v in row) for row in run.verdicts(kept)]
        run.log(name, float(np.mean(counts)))
    return kept


def _value(t: Trajectory, score: Score, penalty: float, most: int) -> float | None:
    if score.missing or not score.steps:
        return score.total
    # a judge that names the first wrong step says nothing of those after it
    steps = max(len(t.steps), len(score.steps))
    return math.fsum(paid for _, paid in score.steps) / steps - (penalty if steps == 1 or steps >= most else 0.0)


def _kept(group: Group, verdicts: list[Score], values: list[float | None], keep: int) -> Group:
    right = [i for i, v in enumerate(verdicts) if v.value is not None and v.value >= 1]
    wrong = [i for i, v in enumerate(verdicts) if v.value is not None and v.value < 1]
    if len(right) + len(wrong) < keep:
        return group

    # sorted is stable: of equal replies the first are kept
    def consistency(i: int, sign: int) -> float:
        return -math.inf if (value := values[i]) is None else sign * value

    of_right = min(len(right), max(keep // 2, keep - len(wrong)))
    chosen = sorted(right, key=lambda i: -consistency(i, 1))[:of_right]
    chosen += sorted(wrong, key=lambda i: -consistency(i, -1))[: keep - of_right]
    return [group[i] for i in sorted(chosen)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


JUDGE = "judge"


def prof(
    base: Recipe | None = None, *, process: Reward | None = None, judge: str = "copy:policy", n: int = 8, keep: int = 4,
    penalty: float = 0.0, max_steps: int = 30, longest: int = 1024,
) -> Recipe:  # fmt: skip
    """process: a reward of steps; None: `judged_steps`, by the model `judge`.  n: replies that are sampled.  keep: of them, trained
    on.  penalty, max_steps: lambda and H.  longest: tokens of the judge's word.
    """
    base = base or grpo(n=n)
    marked = base.required("rollout").but_innermost(steps="newline")
    by = process or judged_steps(model=JUDGE, max_new=longest)
    also = base.also if process else (*base.also, Learner(JUDGE, judge, Recipe(), every=0))
    return base.but(rollout=consistent(inner=marked, process=by, keep=keep, penalty=penalty, max_steps=max_steps), also=also)


fidelity = "core"
left_out = "PROF-POS, which keeps wrong replies at random; code was not found, so that n, m, lambda and H are inferred"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A bus has 40 seats; 25 are taken, and 6 people get off. How many seats are free?", "answer": "21"},
        {"prompt": "What is 12 times 12, less 44?", "answer": "100"},
        {"prompt": "If $a = 3$ and $b = 2a + 1$, what is $b$?", "answer": "7"},
    ],
)

NOISY = -1.0 * noisy_critiques(inner=correct_steps(), miss=0.2, alarm=0.2, votes=1)
claim = Claim(
    says="filtered by a process reward that errs in one step of five, right replies have fewer wrong steps than with GRPO",
    versus="grpo", task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="right_reward", direction="higher", margin=0.0053,
    settings={"process": NOISY},
    by=reward_of_right(reward=aggregate(correct_steps(), by="mean"), rollout=independent(n=1, steps="newline")), steps=40,
    guard=Within("pass@1", low=-0.03), fault=Within("right_reward", high=0.95, says="share of right steps in right replies"),
    finding="of the steps in right replies 95% are right with the filter and 92% with GRPO (90% before), at much the same "
    "accuracy (64% and 66%). A process reward with correlated errors is not tested",
)  # fmt: skip
baseline = "grpo"
