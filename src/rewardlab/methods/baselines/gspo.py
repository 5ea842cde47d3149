"""GSPO: a sequence-level importance ratio, since the reward is sequence-level; token-level ratios only add noise.

    s_i = (pi(o_i) / pi_old(o_i))^(1/|o_i|) = exp(mean_t log ratio_it)
    loss = -mean_i min(s_i A_i, clip(s_i, 1 - eps, 1 + eps_high) A_i)

Implemented per token (GSPO-token), with s_it = sg[s_i] pi_it / sg[pi_it] and the mean over a reply's tokens. Loss and gradient are
the same if A is constant over the reply, and credit may also vary within it.

Zheng et al. 2025, arXiv:2507.18071. Clip ranges and four updates per batch are the paper's. Its replies have thousands of
tokens; the mean over a reply varies as 1 / sqrt(|o|), so short replies need wider ranges (inferred).
"""

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Outputs, Recipe, Run, objective
from rewardlab.data.columns import Data

from .grpo import grpo


@objective(unit="token", needs=("old",))
def sequence_ratio(out: Outputs, batch: Batch, run: Run, *, eps: float = 3e-4, eps_high: float = 4e-4) -> Tensor:
    """-min(s A, clip(s, 1 - eps, 1 + eps_high) A) at every token, with s the geometric mean of the row's ratios."""
    # where, not a product with the mask: 0 times an infinity or NaN outside it would be NaN
    logprobs = torch.where(batch.mask, out.logprobs, 0.0)
    detached, count = logprobs.detach(), batch.mask.sum(1, keepdim=True).clamp(min=1)  # rows may have no decision
    mean_log_ratio = torch.where(batch.mask, detached - batch.old, 0.0).sum(1, keepdim=True) / count  # (B, 1)
    # logprobs - detached is 0 and only carries the gradient: each token's own, scaled by the reply's ratio
    ratio = (mean_log_ratio + logprobs - detached).exp()
    clipped = ratio.clamp(1 - eps, 1 + eps_high)
    return -(ratio * batch.credit).minimum(clipped * batch.credit)


def gspo(base: Recipe | None = None, *, n: int = 8, eps: float = 3e-4, eps_high: float = 4e-4) -> Recipe:
    """eps, eps_high: the ratio of a reply is clipped to [1 - eps, 1 + eps_high]."""
    # in the first update of a batch every ratio is 1: clipping needs more than one
    base = base or grpo(n=n).but(minibatches=4)
    return base.but(objective=sequence_ratio(eps=eps, eps_high=eps_high))


fidelity = "whole"
data = Data(answer="the gold answer")

# replies of 32 tokens instead of 8192: sqrt(256) = 16 times wider ranges
claim = Claim(
    says="with as many updates per batch, ratios of replies learn more than ratios of tokens",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1", measure="auc.truth", direction="higher", margin=0.02,
    settings={"eps": 0.0048, "eps_high": 0.0064}, versus_settings={"minibatches": 4}, steps=40,
    finding="72% right at the end with either, from 36%. The noise of single tokens' ratios, which GSPO averages out, does no "
    "harm with replies of 28 tokens and four updates a batch; it was made for thousands of tokens and mixtures of experts",
    version=2,
    replaces="final pass@1, whose noise between pairs was 6 points",
)  # fmt: skip
