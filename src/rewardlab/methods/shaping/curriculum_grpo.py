"""Curriculum GRPO: reward full use of a token budget that shrinks during training.

    r = correctness * [right] + length * tri(len, B) + form * tags,    tri = len / B up to B,  2 - len / B up to 2B,  0 beyond
    B = start (end / start)^(k / decays),    k = floor((decays + 1) progress), so that all budgets last equally long

Early on there is room to find out how problems are solved; later what works is written more briefly. A reward that falls from
length 0 on would pay for the shortest reply at once. Replies are paid for their length whether they are right or wrong.

Hammoud et al. 2025, arXiv:2508.08940 ("Train Long, Think Short"), sections 3.3, 3.4 and 4.4. Budgets from 256 to 87 tokens in three
decays (a factor of 0.7 after every 150 of 600 steps) and the weights 0.6 and 0.3 are the paper's, of its setting that puts being
right first. (inferred): tags weigh the 0.1 that is left, <think> and <answer> alike. The budget is told after the question in
training, and not when it is measured, as there. `decays=0` keeps the budget at `end`: the baseline.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import tagged
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeInt, PositiveInt
from rewardlab.text.filled import filled

TOLD = "IMPORTANT: You should use exactly {budget} tokens in your response."


def budget(progress: float, start: int, end: int, decays: int) -> float:
    """B, in tokens, where so much of the run is done."""
    # at the very end progress is 1, and the budget still the last one
    k = min(decays, int((decays + 1) * progress))
    return start * (end / start) ** (k / decays) if decays else float(end)


def triangle(length: int, budget: float) -> float:
    """1 for a reply that fills the budget, falling to 0 at no tokens and at twice as many."""
    return max(0.0, 1 - abs(length / budget - 1))


@reward(over="groups")
def fills_budget(
    groups: list[Group], run: Run, *, start: PositiveInt = 256, end: PositiveInt = 87, decays: NonNegativeInt = 3
) -> list[list[float]]:
    """tri(len, B) of every reply under the budget of this step."""
    allowed = budget(run.progress, start, end, decays)
    run.log("budget", allowed)
    return [[triangle(int(t.mask.sum()), allowed) for t in group] for group in groups]


@rollout(wraps="inner")
def told_budget(
    problems: list[Problem], run: Run, *, inner: Rollout, start: PositiveInt = 256, end: PositiveInt = 87,
    decays: NonNegativeInt = 3, told: str = TOLD,
) -> list[Group]:  # fmt: skip
    """The samples of `inner`, with this step's token budget in the prompt: `told` follows each question, with the budget for
    {budget}.
    """
    tokens = str(round(budget(run.progress, start, end, decays)))
    return inner([p.reworded(f"{p.question} {filled(told, budget=tokens)}") for p in problems], run)


def curriculum_grpo(
    base: Recipe | None = None, *, start: int = 256, end: int = 87, decays: int = 3, correctness: float = 0.6, length: float = 0.3,
    form: float = 0.1, told: str = TOLD,
) -> Recipe:  # fmt: skip
    """start, end: the first and the last budget, in tokens.  decays: how often it shrinks in between; 0 keeps it at `end`.
    correctness, length, form: weights of being right (or of the base's reward), of filling the budget, and of the tags.
    told: a sentence after each question of the training, with {budget}; "" leaves it out.
    """
    base = base or grpo()
    outcome: Any = base.reward or correct()
    paid = correctness * outcome + length * fills_budget(start=start, end=end, decays=decays)
    sampled = base.required("rollout")
    if told:
        sampled = told_budget(inner=sampled, start=start, end=end, decays=decays, told=told)
    return base.but(rollout=sampled, reward=paid + form * tagged() if form else paid)


fidelity = "whole"

data = Data(
    prompt="the question, asking for <think>...</think> and <answer>...</answer>: without them the tags earn nothing",
    answer="the gold answer",
    rows=[
        {
            "prompt": "Natalia sold clips to 48 friends in April, and half as many in May. How many did she sell in all? Think "
            "between <think> and </think>, and give the number between <answer> and </answer>.",
            "answer": "72",
        },
        {
            "prompt": "What is $\\frac{3}{4} + \\frac{1}{8}$? Think between <think> and </think>, and give the result between "
            "<answer> and </answer>.",
            "answer": "7/8",
        },
    ],
)

# as in the paper, from what replies have at first to about what the gold solutions need
BUDGETS = {"problems": 8, "start": 40, "end": 28, "told": ""}
claim = Claim(
    says="short, right solutions become likelier by equal updates under a shrinking budget than under its last one throughout",
    versus="curriculum_grpo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="gold", direction="higher",
    margin=0.17, settings=BUDGETS, versus_settings={**BUDGETS, "decays": 0}, by=length_of_right(rollout=independent(n=1)), steps=40,
    guard=Within("pass@1", low=-0.03),
    finding="Right replies rise from 33% to 61% under the shrinking budget, and to 65% under its last one throughout, and "
    "short, right solutions become likelier without the curriculum (27%, 55%): the small policy has nothing to "
    "explore with more tokens.",
)  # fmt: skip
system = "train-long-think-short"
baseline = "grpo"
