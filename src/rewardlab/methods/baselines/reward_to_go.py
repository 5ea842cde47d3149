"""Rewards to go: GRPO with a credit that is fit for rewards of single steps, which its own is not.

    A_t = G_t - b,   whitened over all tokens of the batch;     G_t = sum_{s >= t} r_s
    b = 1/(n - 1) sum over the group's other replies of sum_t G_t / L,   L the most tokens that a reply may have

GRPO's process supervision subtracts the mean step reward of the group from every step and sums what is left (Shao et al. 2024,
arXiv:2402.03300, 4.1.2). So a step that is paid nothing earns minus that mean: where steps are penalised, the reply of more steps
comes out ahead of one with the same rewards in all. Here one number is subtracted once from each return, and into how many steps a
reply is cut changes no advantage.

The baseline and the whitening are those of Cheng et al. 2025, arXiv:2504.15275 (PURE), as released, without its minimum of step
rewards (the method pure_min_form) and for the whole reward at once, the outcome among it. Loss and rollout are GRPO's.
"""

from rewardlab.core import Recipe
from rewardlab.credit.group import subtract_mean_return, whiten
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo


def reward_to_go(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0, eps: float = 0.2) -> Recipe:
    """n: replies per problem.  Rewards of steps come by `--reward`: 'correct() + prm_steps(model="prm:PATH", clip=0.5)'."""
    base = base or grpo(n=n, temperature=temperature, eps=eps)
    return base.but(credit=to_go() >> subtract_mean_return() >> whiten())


fidelity = "core"
left_out = "the minimum of step rewards, which is the method pure_min_form"
data = Data(answer="the gold answer")
claim = None
baseline = "grpo"
