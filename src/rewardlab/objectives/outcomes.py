"""Losses of a language model whose likelihood, relative to a reference, is to be a reward: from outcomes of replies alone.

r = beta sum over tokens of log(model / reference)

ce     -[o log sigmoid(r) + (1 - o) log(1 - sigmoid(r))], o whether the reply is right: r is its log-odds
dpo    -log sigmoid(r_w - r_l) of each right reply w and wrong reply l to the same problem   (Rafailov et al., arXiv:2305.18290)
kto    1 - sigmoid(r - z) if it is right, 1 - sigmoid(z - r) if not; z = max(0, mean of r), without gradient
       (Ethayarajh et al. 2024, arXiv:2402.01306)
nca    -log sigmoid(r_w) - log sigmoid(-r_w) / 2 - log sigmoid(-r_l) / 2 of the pairs of dpo
           (Chen et al. 2024, arXiv:2402.05369)
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.core.domain import PositiveFloat

from .pairs import row_sum


@objective(unit="group", needs=("ref",))
def ratio_from_outcomes(
    out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.05, loss: Literal["ce", "dpo", "kto", "nca"] = "ce"
) -> Tensor:
    """(G,) the mean loss of a group's replies, or of its pairs of a right and a wrong one; 0 where there is none.

    A reply is right if its rewards sum to more than 0; one without a verdict teaches nothing.  loss: as at the top of this file.
    """
    said = beta * row_sum(out.logprobs - batch.ref, batch)
    right, judged = row_sum(batch.reward, batch) > 0, batch.rewarded.any(1)
    same = batch.group[:, None] == batch.group
    if loss in ("dpo", "nca"):
        counted = same & (right & judged)[:, None] & (~right & judged)
        losses = F.softplus(said - said[:, None]) if loss == "dpo" else _contrast(said[:, None], said)
        losses, count = torch.where(counted, losses, 0.0).sum(1), counted.sum(1)
    else:
        z = _reference_point(said.detach(), same & judged) if loss == "kto" else 0.0
        signed = torch.where(right, said - z, z - said)
        losses, count = torch.where(judged, torch.sigmoid(-signed) if loss == "kto" else F.softplus(-signed), 0.0), judged
    zeros = said.new_zeros(batch.groups)
    return zeros.index_add(0, batch.group, losses) / zeros.index_add(0, batch.group, count.to(said)).clamp(min=1)


def _contrast(better: Tensor, worse: Tensor) -> Tensor:
    # -log sigmoid(x) = softplus(-x)
    return F.softplus(-better) + (F.softplus(better) + F.softplus(worse)) / 2


def _reference_point(said: Tensor, of: Tensor) -> Tensor:
    """(B,) for each row the mean over the judged rows of its group, at least 0."""
    return (torch.where(of, said, 0.0).sum(1) / of.sum(1).clamp(min=1)).clamp(min=0)
