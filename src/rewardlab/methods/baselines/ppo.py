"""PPO: a critic predicts the return; generalised advantage estimation compares each token with this prediction.

    delta_t = r_t + gamma V_{t+1} - V_t;   A_t = sum_k (gamma lam)^k delta_{t+k}, whitened over the batch
    loss = -mean_t min(ratio A, clip(ratio, 1 - eps, 1 + eps) A);    critic: (V - (A + V_old))^2 / 2, clipped

Schulman et al. 2017, arXiv:1707.06347; for language models Ouyang et al. 2022, arXiv:2203.02155. The critic is a copy of the
policy with a scalar head.
"""

from rewardlab.core import Learner, Recipe, Update
from rewardlab.credit.group import whiten
from rewardlab.credit.value import gae, lambda_return
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.regularise import kl_to_reference, value_error
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def ppo(
    base: Recipe | None = None, *, n: int = 1, temperature: float = 1.0, eps: float = 0.2, gamma: float = 1.0,
    lam: float = 0.95, beta: float = 0.0, value_clip: float = 0.2, value_lr: float = 1e-3,
) -> Recipe:  # fmt: skip
    """n: replies per problem (a critic needs no group).  value_lr: learning rate of the critic."""
    # 128 problems with one reply: as many rows as 16 groups of 8, the default of the group methods
    update = Update(problems=128, minibatches=2)
    base = base or Recipe(name="ppo", reward=correct(), measure=accuracy(), update=update)
    # the critic's target is the lambda return of the raw rewards: whitening is for the policy alone
    critic = Recipe(
        credit=lambda_return(gamma=gamma, lam=lam),
        objective=value_error(clip=value_clip),
        weighting=token_mean(),
        update=Update(lr=value_lr, minibatches=base.update.minibatches),  # as many updates per batch as the policy
    )
    objective = clipped_ratio(eps=eps)
    return base.but(
        rollout=independent(n=n, temperature=temperature),
        credit=gae(gamma=gamma, lam=lam) >> whiten(),
        # beta = 0 leaves the term out: even with weight 0 it would need a second model in memory for its log-probs
        objective=objective + beta * kl_to_reference() if beta else objective,
        weighting=token_mean(),
        also=(*base.also, Learner("critic", "value-head", critic)),
    )


claim = Claim(
    says="clipped policy gradients with a critic raise pass@1 above the policy they start from",
    versus=None, task="arithmetic", measure="pass@1", direction="higher", margin=0.05, budget=360_000,
    against="before.pass@1",
)  # fmt: skip
baseline = "sft"
