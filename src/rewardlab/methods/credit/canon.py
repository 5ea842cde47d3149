"""CANON: compare replies with the half of their group that is higher or lower by a metric, without presuming which is better.

    a group's replies are divided at the median of a metric (entropy or length) into C+ and C-
    A_inter = r_i - mean of r in the other half;    A_intra = r_i - mean of r in its own half;    A = mu A_inter + (1 - mu) A_intra

If the longer half is right more often, all its right replies gain and all its wrong ones lose less; if the shorter half is, these
do. So a metric counts for more than with the mean of all, and nobody says which way. With mu = 1/2 and equal halves A is that of
Dr. GRPO. alpha below 1 is a prior, against length or for entropy: the rewards of the longer half, or of the half of less entropy,
count that much where halves are compared.

Chen et al. 2025, arXiv:2509.23962. Halves, mu = 1, alpha = 1, no division by the deviation and a constant in place of a reply's
length (the longest, 8192 there: only a scale) are those of the released script and code (biuboomc/CANON, f3ee9fc), and so is which
half alpha is of; 16 replies a prompt there.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Recipe, Run, credit
from rewardlab.credit.entropy import row_entropy
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import constant_length
from rewardlab.settings.domain import NonNegativeFloat, Share

# ---- Credit that compares the replies of a group which have more of something with those that have less of it --------


@credit(compares_rows=True)
def half_group_baseline_by_length(a: Tensor, batch: Batch, run: Run, *, mu: Share = 1.0, alpha: NonNegativeFloat = 1.0) -> Tensor:
    """`across_halves` by the number of decisions of a row.  alpha: factor of the rewards of the longer half."""
    return across_halves(a, batch.mask.sum(1).float(), batch, mu, high=alpha)


@credit(compares_rows=True, needs=("policy.entropy",))
def half_group_baseline_by_entropy(a: Tensor, batch: Batch, run: Run, *, mu: Share = 1.0, alpha: NonNegativeFloat = 1.0) -> Tensor:
    """`across_halves` by the mean entropy of the policy at the decisions of a row, before the update.

    alpha: factor of the rewards of the half of less entropy.
    """
    return across_halves(a, row_entropy(batch), batch, mu, low=alpha)


def across_halves(a: Tensor, metric: Tensor, batch: Batch, mu: float, low: float = 1.0, high: float = 1.0) -> Tensor:
    """A = mu (r - mean r of the other half) + (1 - mu) (r - mean r of its own half), the halves of a group by `metric` (B,).

    low, high: factors of the rewards in the lower and the upper half, where halves are compared.  Of an odd number the upper half
    has one more, and equal rows stay in their order. Rows without a verdict are in no half, and a row without any others gets no
    credit.
    Chen et al. 2025, arXiv:2509.23962
    """
    judged = batch.rewarded.any(1)
    r = torch.where(batch.rewarded, a, 0.0).sum(1)
    advantage = torch.zeros_like(r)
    for g in range(batch.groups):
        rows = ((batch.group == g) & judged).nonzero().squeeze(1)
        if len(rows) < 2:
            continue
        rows = rows[metric[rows].argsort(stable=True)]
        lower, upper = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        advantage[upper] = mu * (high * r[upper] - low * r[lower].mean()) + (1 - mu) * (r[upper] - r[upper].mean())
        advantage[lower] = mu * (low * r[lower] - high * r[upper].mean()) + (1 - mu) * (r[lower] - r[lower].mean())
    return torch.where(batch.mask, advantage[:, None], 0.0)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def canon(
    base: Recipe | None = None, *, metric: Literal["entropy", "length"] = "entropy", mu: float = 1.0, alpha: float = 1.0,
    length: int = 0,
) -> Recipe:  # fmt: skip
    """metric: by which a group is halved.  mu: weight of the comparison between halves.  alpha: of rewards in one half.
    length: the constant by which the loss of every reply is divided; 0: the longest reply that may be sampled (--max-new).
    """
    base = base or grpo()
    halves = half_group_baseline_by_length if metric == "length" else half_group_baseline_by_entropy
    return base.but(credit=halves(mu=mu, alpha=alpha), weighting=constant_length(length=length))


fidelity = "core"
left_out = "schedules of mu (annealed, or a cosine with restarts), sixteen updates per batch and with them the upper clip of .28"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
claim = Claim(
    says="where replies of less entropy are right more often, more is learnt in as many updates than with Dr. GRPO",
    versus="dr_grpo", task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="auc.truth", direction="higher", margin=0.004,
    problems=500, steps=40,
    tried="which half is right more often, frozen, 60 problems: corrected=0.5 by length the upper (+.12 of replies), by entropy "
    "the lower (+.15); redundant=0.4 by length neither. Not fit before, with .003 nats less in the gate; 3 "
    "seeds: effect -0.00697, sd 0.00056",
    finding="start 40% right; CANON ends at 65%, Dr. GRPO at 66%, and CANON is a little slower on the way in sixteen of twenty "
    "pairs. With eight replies a half is four: which half is better is mostly luck (.35 of noise against a true difference of "
    ".15); the paper has sixteen",
)  # fmt: skip
