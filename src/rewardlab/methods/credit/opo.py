"""OPO: strictly on-policy REINFORCE with the length-weighted mean reward of the group as the baseline.

    A_i = r_i - b,    b = sum_j l_j r_j / sum_j l_j over the replies to one problem, l their lengths in tokens;    loss = -A log pi

The constant that lets a gradient estimate vary least is E[|g|^2 r] / E[|g|^2], g the gradient of log pi of a reply. Where |g|^2
grows as the length of the reply, that is b. There is no division by the deviation, no clipping, no KL and no bonus for entropy: one
update is made on each batch, by the policy that sampled it.

Hao et al. 2025, arXiv:2505.23585. b is that of the released code (microsoft/LMOps, opo/verl/trainer/ppo/core_algos.py, 5b90890),
in which the row's own reward counts too; its README sets one update per batch, no KL and no entropy, in verl 0.2.0, whose loss is
the mean over the tokens of a batch. A base that makes several updates on a batch is set to one.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.credit.group import center, subtract_mean_over_tokens
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.gradients import gradient_variance
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def opo(base: Recipe | None = None, *, n: int = 8) -> Recipe:
    """n: replies per problem."""
    base = base or grpo(n=n)
    # epochs and minibatches of 1: every update is made on replies of the policy that it changes
    return base.but(
        credit=to_go() >> subtract_mean_over_tokens(), objective=policy_gradient(), weighting=token_mean(), epochs=1, minibatches=1
    )


fidelity = "whole"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
check = Check(
    says="on a frozen policy the gradient estimate varies less with the length-weighted baseline than with the group's mean",
    versus=None, task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="variance.length",
    direction="lower", margin=0.013, against="variance.mean",
    by=gradient_variance(
        reward=correct(), credits={"mean": center() >> to_go(), "length": to_go() >> subtract_mean_over_tokens()},
        rollout=independent(n=32),
    ),
    problems=40, steps=1, fault=Within("norm_to_length", low=0.2, says="correlation of a gradient's squared norm and the length"),
    learns=None, start=None,
    tried="40 problems of choices, 3 seeds: squared norms do not go along with lengths (.04), and no difference; of countdown, 10: "
    "nor there (-.17); here 10 problems, one seed: .38",
    finding="long replies have larger gradients here (correlation .29), but weighting the mean by length changes nothing: with "
    "either mean the estimate varies 1.34 times as much as without a baseline. Weighted by the true norms it would vary .68 times "
    "as much",
)  # fmt: skip
baseline = "grpo"
