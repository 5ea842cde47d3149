"""GSPO: rewards are of whole replies, so the importance ratio is too; a ratio of single tokens corrects nothing and adds noise.

    s_i = (pi(o_i) / pi_old(o_i))^(1/|o_i|) = exp(mean_t log ratio_it)
    loss = -mean_i min(s_i A_i, clip(s_i, 1 - eps, 1 + eps_high) A_i)

Written by tokens (GSPO-token), with s_it = sg[s_i] pi_it / sg[pi_it] and the mean over a reply's tokens: the same number and the
same gradient where A is one for the whole reply, and it takes credit that differs within it.

Zheng et al. 2025, arXiv:2507.18071. Ranges of clipping and four updates per batch are the paper's. Its replies have thousands of
tokens; the mean over a reply scatters as 1 / sqrt(|o|), so short ones need wider ranges (inferred).
"""

import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs, Recipe, Run, objective
from rewardlab.evals.passk import coverage
from rewardlab.proof.claim import Claim

from .grpo import grpo


@objective(unit="token", needs=("old",))
def sequence_ratio(out: Outputs, batch: Batch, run: Run, *, eps: float = 3e-4, eps_high: float = 4e-4) -> Tensor:
    """-min(s A, clip(s, 1 - eps, 1 + eps_high) A) at every token, s the geometric mean of the row's ratios."""
    logprobs = torch.where(batch.mask, out.logprobs, 0.0)
    fixed, count = logprobs.detach(), batch.mask.sum(1, keepdim=True).clamp(min=1)
    mean = torch.where(batch.mask, fixed - batch.old, 0.0).sum(1, keepdim=True) / count
    ratio = (mean + logprobs - fixed).exp()
    clipped = ratio.clamp(1 - eps, 1 + eps_high)
    return -(ratio * batch.credit).minimum(clipped * batch.credit)


def gspo(base: Recipe | None = None, *, n: int = 8, eps: float = 3e-4, eps_high: float = 4e-4) -> Recipe:
    """eps, eps_high: how far below and above 1 the ratio of a reply may be."""
    base = base or grpo(n=n).but(minibatches=4)
    return base.but(objective=sequence_ratio(eps=eps, eps_high=eps_high))


# 8192 tokens to 32: ranges 16 times as wide
claim = Claim(
    says="on the same tokens and with as many updates per batch, ratios of replies learn more than ratios of tokens",
    versus="grpo", task="countdown", measure="pass@1", direction="higher", margin=0.02, budget=500_000,
    settings={"eps": 0.0048, "eps_high": 0.0064}, versus_settings={"minibatches": 4}, by=coverage(n=4, k=4),
)  # fmt: skip
