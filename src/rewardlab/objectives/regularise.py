"""Regularisers of a policy or a critic."""

from __future__ import annotations

from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective


@objective(unit="token", needs=("ref",))
def kl_to_reference(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """The unbiased, always positive estimate ref/pi - log(ref/pi) - 1 of KL(pi || ref).

    Schulman 2020, "Approximating KL divergence" (k3); Shao et al. 2024, arXiv:2402.03300
    """
    log_ratio = batch.ref - out.logprobs
    return log_ratio.exp() - log_ratio - 1


@objective(unit="token", wants=("logprobs", "entropy"))
def negative_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-H of the policy at each decision; scale it for an entropy bonus."""
    return -out.entropy


@objective(unit="token", wants=("value",), needs=("value",))
def value_error(out: Outputs, batch: Batch, run: Run, *, clip: float | None = 0.2) -> Tensor:
    """(V - return)^2 / 2, the change of V clipped around its value before the update (Schulman et al. 2017)."""
    value, before = out.value.roll(1, 1), batch.value.roll(1, 1)
    error = (value - batch.credit).square()
    if clip is not None:
        near = before + (value - before).clamp(-clip, clip)
        error = error.maximum((near - batch.credit).square())
    return 0.5 * error
