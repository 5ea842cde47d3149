"""Objectives of judges: labels are rewards, at the positions where they fall."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective, weighting
from rewardlab.settings.domain import NonNegativeInt

from .pairs import row_sum


@objective(unit="row", wants=("value",))
def label_cross_entropy(out: Outputs, batch: Batch, run: Run, *, before: NonNegativeInt = 0) -> Tensor:
    """Mean over a row's labels r of -[r log sigmoid(V) + (1 - r) log(1 - sigmoid(V))]: the value is the log-odds of being right.

    A label is the reward at a position, cut to [0, 1]: rewards of steps teach a process reward model (Lightman et al. 2023,
    arXiv:2305.20050), shares of right continuations a Monte-Carlo one (Wang et al. 2024, arXiv:2312.08935), and one reward at the
    end an outcome reward model (Cobbe et al. 2021, arXiv:2110.14168). A row without a reward teaches nothing.
    before: so many positions before a label have it too. A step ends with its line break; one token earlier is the digit that
    makes it wrong, beside the state that expected another.
    """
    label, labelled = batch.reward.clamp(0, 1), batch.rewarded
    for _ in range(before):
        # decisions that have no label of their own take that of the next position; the last column has none after it
        later, there = (F.pad(x[:, 1:], (0, 1)) for x in (label, labelled))
        taken = there & batch.mask & ~labelled
        label, labelled = torch.where(taken, later, label), labelled | taken
    losses = F.binary_cross_entropy_with_logits(out.value, label, reduction="none")
    return torch.where(labelled, losses, 0.0).sum(1) / labelled.sum(1).clamp(min=1)


@objective(unit="token", wants=("value",))
def each_label_cross_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """As `label_cross_entropy`, per label, so that a weighting such as `balanced_labels` can weight each one."""
    loss = F.binary_cross_entropy_with_logits(out.value, batch.reward.clamp(0, 1), reduction="none")
    return torch.where(batch.rewarded, loss, 0.0)


@weighting
def balanced_labels(batch: Batch) -> Tensor:
    """Equal total weight for labels above 1/2 and for the others; 0 where there is no label.

    Each weighs as often as it would stay if of the more frequent kind so many were left out, at random, that both are equally many:
    with right labels alone none stays. The last label of a reply, of the step with its answer, is balanced among the last ones.
    """
    right = batch.reward > 0.5
    later = batch.rewarded.flip(1).cumsum(1).flip(1)
    weight = torch.zeros_like(batch.reward)
    for place in (batch.rewarded & (later == 1), batch.rewarded & (later > 1)):
        kinds = [place & right, place & ~right]
        fewer = min(kind.sum() for kind in kinds)
        for kind in kinds:
            weight += kind * fewer / kind.sum().clamp(min=1)
    # a batch of one kind of labels has loss 0, not NaN
    return weight / weight.sum().clamp(min=1)


@objective(unit="row", wants=("value",))
def label_squared_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """Mean over a row's labels r of (V - r)^2: the value is the reward itself. A row without a reward teaches nothing."""
    errors = torch.where(batch.rewarded, (out.value - batch.reward).square(), 0.0)
    return errors.sum(1) / batch.rewarded.sum(1).clamp(min=1)


@objective(unit="row", wants=("value",))
def mean_label_cross_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-[o log sigmoid(m) + (1 - o) log(1 - sigmoid(m))], m: the mean value before a row's decisions, o: 1 if it is right, else 0.

    Right is what earned 1 or more: what is partly right is wrong. So an outcome is shared out among the tokens, and what a token
    adds to the mean is its score. A row without a reward teaches nothing.  Lyu et al. 2025, arXiv:2502.06781
    """
    # the state of a decision ends one position before it
    mean = row_sum(out.value.roll(1, 1), batch) / batch.mask.sum(1).clamp(min=1)
    right = (row_sum(batch.reward, batch) >= 1).float()
    loss = F.binary_cross_entropy_with_logits(mean, right, reduction="none")
    return loss.where(batch.rewarded.any(1), 0.0)


@objective(unit="row")
def language_model(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """Mean over a row's tokens of -log p, beside the loss of a scalar head: it keeps the trunk's language modelling.

    By row, so that a weighting of tokens for the other loss does not apply. A model whose vocabulary head was a matrix of its own
    has lost it to the value head, and is refused.
    """
    return row_sum(-out.logprobs, batch) / batch.mask.sum(1).clamp(min=1)
