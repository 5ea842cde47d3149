"""Policy-gradient objectives, per token."""

from __future__ import annotations

from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.settings.domain import PositiveFloat


@objective(unit="token", needs=("old",))
def clipped_ratio(
    out: Outputs,
    batch: Batch,
    run: Run,
    *,
    eps: PositiveFloat = 0.2,
    eps_high: PositiveFloat | None = None,
    dual: PositiveFloat | None = None,
) -> Tensor:
    """-min(ratio A, clip(ratio, 1 - eps, 1 + eps_high) A),  ratio = pi / pi_old.

    dual: where A < 0, the gain is at least dual * A, which bounds the loss of bad decisions (Ye et al. 2020, arXiv:1912.09729);
    3 is the default of verl's own losses, None that of TRL and of most papers.
    Schulman et al. 2017, arXiv:1707.06347
    """
    # the importance ratio of each token, (B, T)
    ratio = (out.logprobs - batch.old).exp()
    clipped = ratio.clamp(1 - eps, 1 + (eps if eps_high is None else eps_high))
    # the minimum is pessimistic: clipping can only lower the gain, never hide a change for the worse
    gain = (ratio * batch.credit).minimum(clipped * batch.credit)
    # for A < 0 the minimum leaves a large ratio unclipped, and its loss without a bound
    if dual is not None:
        gain = gain.where(batch.credit >= 0, gain.maximum(dual * batch.credit))
    return -gain


@objective(unit="token")
def policy_gradient(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-A log pi.  Williams 1992"""
    return -batch.credit * out.logprobs


@objective(unit="token")
def imitate(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-log pi: maximum likelihood."""
    return -out.logprobs


@objective(unit="token")
def imitate_by_probability(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-sg(pi) log pi, sg the stop-gradient: maximum likelihood with each token weighted by its probability.

    Its gradient is that of -pi: a policy gradient whose reward is 1 for the recorded token. That of -log pi divides the reward by
    pi, so that tokens which the policy finds unlikely outweigh all others.  Wu et al. 2025, arXiv:2508.05629
    """
    return -out.logprobs.detach().exp() * out.logprobs
