"""Regularisers of a policy or a critic."""

from __future__ import annotations

from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.settings.domain import PositiveFloat


@objective(unit="token", needs=("ref",))
def kl_to_reference(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """The estimate ref/pi - log(ref/pi) - 1 of KL(pi || ref): unbiased for tokens sampled from pi, and never negative.

    As a loss, as in GRPO, its gradient is on average that of KL(ref || pi) at each token; `squared_log_ratio`, and `less_kl` in the
    reward, have that of KL(pi || ref) (Tang and Munos 2025, arXiv:2506.09477).
    Schulman 2020, "Approximating KL divergence" (k3); Shao et al. 2024, arXiv:2402.03300
    """
    log_ratio = batch.ref - out.logprobs
    return log_ratio.exp() - log_ratio - 1


@objective(unit="token", wants=("logprobs", "entropy"))
def negative_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """Minus the entropy of the policy at each decision, in nats; scale it for an entropy bonus."""
    return -out.entropy


@objective(unit="token", wants=("value",), needs=("value",))
def value_error(out: Outputs, batch: Batch, run: Run, *, clip: PositiveFloat | None = 0.2) -> Tensor:
    """(V - return)^2 / 2, with V clipped to within `clip` of its value before the update (Schulman et al. 2017).

    The return is in `batch.credit`. clip=None: no clipping.
    """
    # the state of decision t ends at t - 1, so values move one position to the right
    value, before = out.value.roll(1, 1), batch.value.roll(1, 1)
    error = (value - batch.credit).square()
    if clip is not None:
        clipped = before + (value - before).clamp(-clip, clip)
        # the larger error, so that clipping cannot hide one
        error = error.maximum((clipped - batch.credit).square())
    return 0.5 * error
