"""Losses of step judges, from labels at the ends of steps: on a value head, on the log-odds of a word, on log-ratios.

    Q     the log-odds that a step is right: the value at its end; logit(right word) - logit(wrong word) at the judgement's token;
          or beta times the sum over the step's tokens of log(model / reference)

    bce       cross-entropy of the label rounded to 0 or 1           (Lightman et al. 2023, arXiv:2305.20050)
    soft      cross-entropy of the label as it is: a share           (Wang et al. 2024, arXiv:2312.08935, soft estimation)
    mse       (sigmoid(Q) - label)^2
    rank      -(1/|C|) sum over right steps t in C of log exp(Q_t) / (sum_{q <= t in C} exp(Q_q) + sum_{w in W} exp(Q_w + zeta)),
              W the wrong steps; where there are some, C begins with the prompt, whose Q is 0, which is below every later right step
              (PQM: Li and Li 2024, arXiv:2410.11287). It orders steps: right ones come above 0 and wrong ones below -zeta, and
              sigmoid(Q) is no chance. The released code counts Q_t itself twice from the second step on; here it counts once
    quantile  max(tau d, (tau - 1) d), d = label - sigmoid(Q): the tau-quantile of the shares that one may expect, so that a tau
              below 1/2 makes a cautious judge (Park et al. 2025, arXiv:2506.09338, who predict several; this head has one)

A label is the reward at a step's end, cut to [0, 1]; a row without labels teaches nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, Share
from rewardlab.util.outputs import last_tokens


@objective(unit="row", wants=("value",))
def value_of_steps(
    out: Outputs,
    batch: Batch,
    run: Run,
    *,
    loss: Literal["bce", "soft", "mse", "rank", "quantile"] = "bce",
    zeta: NonNegativeFloat = 4.0,
    tau: Share = 0.5,
) -> Tensor:
    """Q is the value at a step's last token.  loss, zeta, tau: as at the top of this file."""
    return step_loss(out.value, batch, loss, zeta, tau)


@objective(unit="row", wants=("hidden",))
def words_of_steps(
    out: Outputs, batch: Batch, run: Run, *, wrong: str = "No", right: str = "Yes",
    loss: Literal["bce", "soft", "mse", "rank", "quantile"] = "bce", zeta: NonNegativeFloat = 4.0, tau: Share = 0.5,
) -> Tensor:  # fmt: skip
    """Q is the log-odds of two tokens with which the model judges a step right or wrong: the label falls on that token.

    wrong, right: the words, of which the last token counts. Whichever of them the row holds there is not looked at.
    """
    head = run.policy.vocabulary_head().float()[last_tokens(run.policy.tokenizer, (wrong, right))]
    # the state of a decision ends one position before it
    hidden = F.pad(out.hidden[:, :-1], (0, 0, 1, 0))
    # a bias is a column of the matrix for an input that is always 1
    hidden = F.pad(hidden, (0, head.shape[1] - hidden.shape[2]), value=1.0)
    return step_loss(hidden @ (head[1] - head[0]), batch, loss, zeta, tau)


@objective(unit="row", needs=("ref",))
def ratios_of_steps(
    out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.05,
    loss: Literal["bce", "soft", "mse", "rank", "quantile"] = "bce", zeta: NonNegativeFloat = 4.0, tau: Share = 0.5,
    sums: bool = False,
) -> Tensor:  # fmt: skip
    """Q is beta times the log-ratio to the reference, summed over a step's tokens (Yuan et al. 2024, arXiv:2412.01981).

    sums: over all tokens up to the step's end, so that the last step's is the log-odds of the whole solution.
    """
    ratio = torch.where(batch.mask, beta * (out.logprobs - batch.ref), 0.0)
    # exclusive sums: their difference over a step is its own sum
    total = F.pad(ratio.cumsum(1), (1, 0))
    at_ends = torch.zeros_like(ratio)
    for i, (t, _) in enumerate(batch.rows):
        first = int(batch.mask[i].int().argmax())
        for start, end in pairwise((first, *(at + 1 for at in t.steps))):
            at_ends[i, end - 1] = total[i, end] - (0.0 if sums else total[i, start])
    return step_loss(at_ends, batch, loss, zeta, tau)


def step_loss(q: Tensor, batch: Batch, loss: str, zeta: float, tau: float) -> Tensor:
    """(B,) the loss of each row, from Q (B, T) at the positions that have a label."""
    label, labelled = batch.reward.clamp(0, 1), batch.rewarded
    if loss == "rank":
        return ranking_loss(q, (label >= 0.5) & labelled, (label < 0.5) & labelled, zeta)
    if loss in ("bce", "soft"):
        target = (label >= 0.5).float() if loss == "bce" else label
        losses = F.binary_cross_entropy_with_logits(q, target, reduction="none")
    else:
        off = label - q.sigmoid()
        losses = off.square() if loss == "mse" else torch.maximum(tau * off, (tau - 1) * off)
    return torch.where(labelled, losses, 0.0).sum(1) / labelled.sum(1).clamp(min=1)


def ranking_loss(q: Tensor, right: Tensor, wrong: Tensor, zeta: float) -> Tensor:
    """(B,) PQM's comparative loss over the positions `right` and `wrong` (B, T), with the prompt's Q of 0 before them."""
    none = torch.finfo(q.dtype).min
    # log of the sum over the prompt and right steps up to t, and over all wrong ones
    before = torch.logaddexp(q.masked_fill(~right, none).logcumsumexp(1), q.new_zeros(()))
    others = (q + zeta).masked_fill(~wrong, none).logsumexp(1, keepdim=True)
    losses = torch.where(right, torch.logaddexp(before, others) - q, 0.0).sum(1)
    # without the prompt, replies would be ordered within themselves alone, and could not be compared with each other
    flawed = wrong.any(1)
    of_prompt = torch.where(flawed, F.softplus(others.squeeze(1)), 0.0)
    return (losses + of_prompt) / (right.sum(1) + flawed).clamp(min=1)
