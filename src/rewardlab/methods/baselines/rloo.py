"""RLOO: plain REINFORCE with the mean reward of the group's other replies as the baseline.

    A_i = r_i - mean of r_j, j != i;     loss = -mean_i A_i log pi(reply_i)

Ahmadian et al. 2024, arXiv:2402.14740. There is no clipping and no division by a standard deviation. With beta, the KL to the
starting policy is added to the loss (the paper subtracts it from the reward).
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, Update
from rewardlab.credit.group import leave_one_out
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.objectives.weighting import constant_length
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def rloo(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0, beta: float = 0.0, length: int = 1) -> Recipe:
    """length: the log-prob of a reply is divided by this constant (1: the whole reply is one action, as in the paper)."""
    base = base or Recipe(name="rloo", reward=correct(), measure=accuracy(), update=Update())
    objective = policy_gradient()
    return base.but(
        rollout=independent(n=n, temperature=temperature),
        credit=leave_one_out() >> to_go(),
        # beta = 0 leaves the term out: even with weight 0 it would need a second model in memory for its log-probs
        objective=objective + beta * kl_to_reference() if beta else objective,
        weighting=constant_length(length=length),
    )


data = Data(answer="the gold answer")

claim = Claim(
    says="after equal updates on as many replies, leave-one-out REINFORCE learns more than PPO",
    versus="ppo", task="arithmetic:biased=0.75,error=0.1", measure="auc.truth", direction="higher", margin=0.02,
    versus_settings={"epochs": 1}, steps=40, version=2,
    replaces="on the same tokens PPO made less than half as many updates; the policy was 98% right greedily; the margin was 0",
)  # fmt: skip
