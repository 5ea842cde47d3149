"""GRPO-lambda: a length penalty for right replies, only in the groups of the batch with the highest pass rates.

    groups are ranked by their share of right replies, and the first lambda of them are penalised
    penalised: r = 1 - alpha sigmoid((len - mean) / std) if right;    others: r = 1 if right;    wrong replies earn 0 in both

mean and std are over the lengths of the group's right replies. Where a prompt is rarely solved, brevity would cost the reasoning
that it needs. A penalty on every group makes accuracy collapse early in training; plain 0/1 rewards leave replies long.

Dai et al. 2025, arXiv:2505.18086, by an article that quotes its formulas and lambda = 0.2; the penalty is that of Arora & Zanette
2025, arXiv:2502.04463. (inferred): alpha, and that ties are ranked by position. The code that the article adds has alpha = 0.6; it
is the article's own, and pays wrong replies of the penalised groups too. The default is 0.2, which the check and the league of
length took, beside 0.1 and 0.4. `share=1` is GRPO with the length penalty everywhere.
"""

import math

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores
from rewardlab.data.columns import Data
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def top_groups(verdicts: Scores, share: float) -> set[int]:
    """Indices of the ceil(share * G) groups with the largest share of right replies among those with a verdict."""
    # rows without a verdict count neither as right nor as wrong
    judged = [[s.value >= 1.0 for s in row if s.value is not None] for row in verdicts]
    solved = [float(np.mean(row)) if row else 0.0 for row in judged]
    # sorted is stable: ties keep the order of the batch
    order = sorted(range(len(solved)), key=lambda g: -solved[g])
    return set(order[: math.ceil(share * len(order))])


@reward(over="groups", relative=True)
def length_where_solved(groups: list[Group], run: Run, *, share: float = 0.2) -> Scores:
    """sigmoid of the normalised length for right replies of the groups that are right most often, 0 for all other replies."""
    verdicts = correct()(groups, run)
    top = top_groups(verdicts, share)
    return [_penalties(group, row, g in top) for g, (group, row) in enumerate(zip(groups, verdicts, strict=True))]


def _penalties(group: Group, verdicts: list[Score], penalised: bool) -> list[Score]:
    lengths = np.array([t.mask.sum() for t in group], float)
    right = np.array([v.value is not None and v.value >= 1.0 for v in verdicts])
    penalty = np.zeros(len(group))
    if penalised and right.any():
        # equal lengths have std 0: the epsilon makes each z 0 and its penalty 1/2, which the group's mean subtracts again
        normalised = (lengths[right] - lengths[right].mean()) / (lengths[right].std() + 1e-6)
        penalty[right] = 1 / (1 + np.exp(-normalised))
    return [Score(None if v.value is None else float(p), why=v.why) for v, p in zip(verdicts, penalty, strict=True)]


def grpo_lambda(base: Recipe | None = None, *, share: float = 0.2, alpha: float = 0.2) -> Recipe:
    """share: of the batch's groups in which length is penalised, lambda.  alpha: the most that length can cost a right reply."""
    base = base or grpo()
    return base.but(reward=(base.reward or correct()) - alpha * length_where_solved(share=share))


fidelity = "core"
left_out = "the paper's own alpha, which no text at hand gives."

data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A recipe for 4 people takes 300 g of flour. How much do 10 people need, in g?", "answer": "750"},
        {"prompt": "Let $f(x) = 2x^2 - 3$. What is $f(-2)$? Put your answer in \\boxed{}.", "answer": "5"},
        {"prompt": "How many even numbers are there from 1 to 99?", "answer": "49"},
    ],
)

claim = Claim(
    says="right replies become shorter than GRPO's after equal updates, at the same accuracy",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="log_right_length", direction="lower",
    margin=0.04, settings={"problems": 8}, versus_settings={"problems": 8}, by=length_of_right(rollout=independent(n=1)),
    steps=40, guard=Within("pass@1", low=-0.03), fault=Within("right_length", low=31.0, says="tokens of right replies"),
    finding="Right replies shorten from 36.7 tokens to 31.6, with GRPO alone to 34.5, and as many are right (65%, 64%; 33% at "
    "the start).",
)  # fmt: skip
