"""Reasoning or memorization: a reward that says nothing, as the control of a gain; and which problems a model has seen before.

    random: r = 1 with probability `chance`, whatever the reply;    inverted: r = 1 - r_accurate
    incorrect: r = 1 for the most frequent wrong answer of the group
    graded: r_accurate = 1 - min(|e|, 1) / 2 - min(|e| / |b|, 1) / 2,    e = prediction - b, the gold number b

Published gains under such rewards came from benchmarks that the model had seen: half of MATH-500 was completed word by word from
the first 60% of each question. On problems made afterwards only accurate rewards taught anything. So before you believe a gain,
train the same model on the same rows with `--rewards random`: what rises there was not learnt from the reward. And ask which rows
the model knows: rewardlab data contamination FILE --model M.

Wu et al. 2025, arXiv:2507.10532. Of the paper: the four rewards, chance .5, the graded reward of RandomCalculation, whose answers
are rarely exactly right at first, and the partial prompts (`evals/partial_prompts.py`). (inferred): a graded reply without a number
earns 0; an error where the gold number is 0 counts as its own size in both terms; `incorrect` takes the answer that came first
where two are as frequent, and pays nothing to a group that is all right. Clipping alone can move a policy under random rewards
(Shao et al. 2025, arXiv:2506.10947): where the loss makes one step on each batch there is none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import pass_curve
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import Share
from rewardlab.text.answers import final_answer
from rewardlab.text.numbers import number


@reward(over="groups")
def coin(groups: list[Group], run: Run, *, chance: Share = 0.5) -> Scores:
    """1 with this probability, else 0, whatever a reply says."""
    thrown = torch.rand(sum(map(len, groups)), generator=run.rng("coin")).tolist()
    values = iter(thrown)
    return [[Score(float(next(values) < chance)) for _ in group] for group in groups]


@reward(over="groups", relative=True)
def incorrect_majority(groups: list[Group], run: Run) -> Scores:
    """1 for replies with the most frequent wrong answer of their group, else 0; no verdict where the task's verifier has none."""
    return [_majority(group, row) for group, row in zip(groups, run.verdicts(groups), strict=True)]


def _majority(group: Group, verdicts: list[Score]) -> list[Score]:
    said = [None if s.value is None or s.value >= 1.0 else final_answer(t.reply) for t, s in zip(group, verdicts, strict=True)]
    wrong = Counter(answer for answer in said if answer is not None)
    most = wrong.most_common(1)[0][0] if wrong else None
    return [
        Score(None, why=s.why) if s.value is None else Score(float(most is not None and answer == most))
        for answer, s in zip(said, verdicts, strict=True)
    ]


@reward
def closeness(trajectory: Trajectory) -> float:
    """From 0 to 1: how near the number of a reply is to the gold one, half by their distance and half by the relative one."""
    gold = number(str(trajectory.problem.answer))
    if gold is None:
        raise RewardlabError(
            f"closeness compares numbers; the answer of {trajectory.problem.question[:60]!r} is {trajectory.problem.answer!r}: "
            "leave `graded` out"
        )
    said = number(final_answer(trajectory.reply) or "")
    return 0.0 if said is None else near(float(said), float(gold))


def near(said: float, gold: float) -> float:
    """1 - min(|e|, 1) / 2 - min(|e| / |gold|, 1) / 2."""
    error = abs(said - gold)
    return 1 - min(error, 1) / 2 - min(error / (abs(gold) or 1), 1) / 2


def randomcalculation_contamination(
    base: Recipe | None = None, *, rewards: Literal["random", "inverted", "incorrect", "accurate"] = "random",
    chance: float = 0.5, graded: bool = False,
) -> Recipe:  # fmt: skip
    """rewards: what replies are paid; accurate is the base's own reward.  chance: of being paid at random.  graded: accurate and
    inverted rewards by the distance of numbers.
    """
    base = base or grpo()
    if graded and rewards not in ("accurate", "inverted"):
        raise RewardlabError(f"graded says how accurate rewards are given, and {rewards} ones read no distance: leave it out")
    accurate: Any = closeness() if graded else base.reward or correct()
    paid = {
        "random": coin(chance=chance), "inverted": 1 - accurate, "incorrect": incorrect_majority(), "accurate": accurate,
    }  # fmt: skip
    # by the verifier whatever is paid: a gain of the coin itself would tell nothing
    return base.but(reward=paid[rewards], measure=pass_curve(n=8))


fidelity = "core"
left_out = (
    "Qwen and Llama models, and MATH-500 beside newer benchmarks; RandomCalculation itself, expressions of up to 20 operations"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "Compute 17 - 4 * 3. Put the result in \\boxed{}.", "answer": "5"},
        {"prompt": "A train leaves at 9:40 and arrives at 11:05. How many minutes does it take?", "answer": "85"},
        {"prompt": "What is the remainder of 2^10 divided by 7?", "answer": "2"},
    ],
)

claim = Claim(
    says="on problems that nobody has seen, random rewards make no more replies right, where accurate ones do",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="lower", margin=0.1,
    settings={"problems": 8}, versus_settings={"problems": 8}, steps=40,
    guard=Within("pass@1", high=0.03, says="right replies, from the start"), guard_from="start",
    finding="With random rewards right replies fall from 36% to 12%, with accurate ones they rise to 62%. What a coin pays is "
    "noise that every update follows: the policy loses what it could, and gains nothing.",
)  # fmt: skip
