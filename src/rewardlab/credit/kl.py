"""KL to the reference policy, as a penalty or as a bound on the reward."""

from __future__ import annotations

from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat


@credit(needs=("old", "ref"))
def less_kl(a: Tensor, batch: Batch, run: Run, *, beta: NonNegativeFloat = 0.01) -> Tensor:
    """Subtract beta log(pi_old / ref) at every decision. Its sum over a reply estimates beta KL(pi_old || ref).

    Ziegler et al. 2019, arXiv:1909.08593; Ouyang et al. 2022, arXiv:2203.02155
    """
    # where, not a product with the mask: log-probs may be NaN where the policy decided nothing
    return a - (beta * (batch.old - batch.ref)).where(batch.mask, 0.0)


@credit(needs=("old", "ref"))
def fade_to_kl(
    a: Tensor, batch: Batch, run: Run, *, max_kl: PositiveFloat = 10.0, per_token: NonNegativeFloat = 0.0
) -> Tensor:  # fmt: skip
    """Multiply the rewards of a reply by max(0, 1 - log(pi_old / ref) / max_kl): they fade to 0 at `max_kl` nats from the
    reference.

    The log-ratio is that of the whole reply, which grows with its length: per_token allows long ones so many nats for each of
    their tokens, if that is more. Logs the mean as `kl`, and as `faded` the share of replies of which nothing is left.
    Xu et al. 2024, arXiv:2409.20370
    """
    log_ratio = (batch.old - batch.ref).where(batch.mask, 0.0).sum(1)  # (B,)
    left = (1 - log_ratio / (per_token * batch.mask.sum(1)).clamp(min=max_kl)).clamp(min=0)
    run.log("kl", float(log_ratio.mean()))
    run.log("faded", float((left == 0).float().mean()))
    return a * left[:, None]
