"""CISPO: clip the importance weight, not the update, so that no token is ever left out of the gradient.

    loss = -1 / (sum_i |o_i|) sum_i sum_t sg[clip(ratio, 1 - eps_low, 1 + eps_high)] A log pi

Where PPO's minimum is the clipped one, its gradient is 0: rare tokens, at which reasoning turns, rise past the bound after the
first of several updates and are dropped from the others. Here the bound limits how much they weigh.

MiniMax 2025, arXiv:2506.13585 (MiniMax-M1). As there, the weight has no lower bound (eps_low = 1) and there is no KL; dynamic
sampling and the punishment of length, taken from DAPO there, are left to the stack `dapo+cispo`
with `dapo.eps_high=null`, which leaves the objective to CISPO. The paper does not say its upper
bound; 5 (inferred) is that of Khatri et al. 2025, arXiv:2510.13786.
"""

from torch import Tensor

from rewardlab.core import Batch, Outputs, Recipe, Run, objective
from rewardlab.evals.passk import coverage
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim

from .grpo import grpo


@objective(unit="token", needs=("old",))
def clipped_weight(out: Outputs, batch: Batch, run: Run, *, eps_low: float = 1.0, eps_high: float = 4.0) -> Tensor:
    """-w A log pi with the fixed weight w = clip(pi / pi_old, 1 - eps_low, 1 + eps_high)."""
    weight = (out.logprobs.detach() - batch.old).exp().clamp(1 - eps_low, 1 + eps_high)
    return -weight * batch.credit * out.logprobs


def cispo(base: Recipe | None = None, *, n: int = 8, eps_low: float = 1.0, eps_high: float = 4.0) -> Recipe:
    """eps_low, eps_high: how far below and above 1 the weight of a token may be."""
    base = base or grpo(n=n).but(minibatches=4)
    return base.but(objective=clipped_weight(eps_low=eps_low, eps_high=eps_high), weighting=token_mean())


claim = Claim(
    says="with many updates per batch, keeping every token learns more on the same tokens than GRPO, which drops the clipped ones",
    versus="grpo", task="countdown", measure="pass@1", direction="higher", margin=0.02, budget=500_000,
    settings={"minibatches": 8}, versus_settings={"minibatches": 8}, by=coverage(n=4, k=4),
)  # fmt: skip
