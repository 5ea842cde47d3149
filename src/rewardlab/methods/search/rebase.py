"""REBASE: a tree whose rows share the budget of each depth by the softmax of their rewards.

    W_j = B exp(R_j / T) / sum_k exp(R_k / T),   B = n - replies that have ended;     answer = argmax over a of sum_i 1[a_i = a] R_i

Every reply is paid for once, where MCTS spends many rollouts to learn which nodes are worth it.

Wu et al. 2024, arXiv:2408.00724. Widths are rounded as in the released code; T = 0.2 is (inferred). Without a scorer, the geometric
mean of the policy's own probabilities is the score.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rollouts.reward_balanced import reward_balanced
from rewardlab.select.best import best


def rebase(
    base: Recipe | None = None, *, n: int = 16, balance: float = 0.2, temperature: float = 1.0, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "vote",
) -> Recipe:  # fmt: skip
    """n: replies per problem.  balance: T; a lower one spends more on the best rows.  step_tokens: most tokens of a step.
    stop: the texts that end one.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="rebase", reward=own_probability(), measure=accuracy(), update=Update())
    search = reward_balanced(
        score=base.required("reward"), n=n, balance=balance, temperature=temperature, step_tokens=step_tokens, stop=stop
    )
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


claim = None
baseline = None
system = None
