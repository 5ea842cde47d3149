"""AnytimeReasoner: thinking is cut off at several budgets, and learns from how right the answers are that are forced there.

    r_j = mean reward of the answers after b_j tokens,     R_s = sum_{j >= s} p_j r_j,     A = R_s - V for the tokens before b_s
    BRPO: V = (s V1 + (S - s) V2) / S, s = 0 .. S - 1;     V2: mean of R_s over the traces of the problem
    V1 = (sum_{j < s} 2^j r_j / sum_{j < s} 2^j) sum_{j >= s} p_j
    answers: reward less the mean of those after the same thinking

Rewards at all budgets say where in the thinking an answer was found. How right the answers were before says much about how right
they will be, and it is known before the next tokens: as a baseline it leaves the gradient its mean, and takes variance from it.

Qi et al. 2025, arXiv:2505.13438. V, its weights, budgets of equal distance, p (uniform, or linear in b_j), no division by the
deviation and the answers' own group are those of the authors' code as a fork keeps it (wjurayj/AnytimeReasoner, 068a38b, verl/verl/
trainer/ppo/brpo.py). Budgets after the end of a trace share one mean here. (inferred): one policy, one loss for both kinds of rows.

Data: prompts and answers. Where thinking ends: mark ("</think>", or what stands before an answer).
"""

from typing import Literal

from rewardlab.core import Recipe
from rewardlab.credit.budgets import relative_to_budgets
from rewardlab.evals.advantages import advantage_variance
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.budgets import by_its_answers
from rewardlab.rewards.task import correct
from rewardlab.rollouts.budgets import under_budgets
from rewardlab.rollouts.independent import independent


def anytime_reasoner_brpo(
    base: Recipe | None = None, *, longest: int = 32, cuts: int = 4, prior: Literal["uniform", "linear"] = "uniform", n: int = 8,
    answers: int = 4, tokens: int = 16, mark: str = "\nAnswer:", baseline: Literal["budget", "group", "none"] = "budget",
) -> Recipe:  # fmt: skip
    """longest: tokens of thinking.  cuts, prior: S and p.  n: traces per problem.  answers: per trace and budget, of so many
    tokens at most.  mark: ends thinking.  baseline: V; group: V2 alone.
    """
    base = base or grpo(n=n)
    asked = base.required("rollout")
    return base.but(
        rollout=under_budgets(of=asked, longest=longest, cuts=cuts, answers=answers, tokens=tokens, mark=mark),
        reward=by_its_answers(of=base.reward or correct()),
        credit=relative_to_budgets(cuts=cuts, prior=prior, baseline=baseline),
        weighting=token_mean(),
    )


claim = Claim(
    says="advantages of thinking vary less with the trace's own earlier answers in the baseline than with the group's mean alone",
    versus=None, task="cells", measure="variance.budget", direction="lower", margin=0.0011,
    against="variance.group",
    by=advantage_variance(
        rollout=under_budgets(of=independent(n=8), longest=64), reward=by_its_answers(of=correct()), tag="thinking",
        credits={kind: relative_to_budgets(baseline=kind) for kind in ("budget", "group", "none")},
    ),
    problems=40, steps=1, fault=Within("variance.none", low=0.01, says="variance without a baseline"), learns=None,
    tried="12 problems each, budget against group: cells .0258 .0267, choices .0756 .0763 (.0388 .0367 with budgets of 6 tokens), "
    "arithmetic .0330 .0303, redundant=0.4 .0134 .0127: there no answer is right before the last step, so that V1 says nothing",
)  # fmt: skip
baseline = "grpo"
