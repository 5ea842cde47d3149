"""Learning to say what another model would say."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective


@objective(unit="token", wants=("hidden",), needs=("teacher.hidden",))
def like_teacher(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """KL(teacher || policy) at each decision, over the whole vocabulary; the teacher is the learner of that name. 0 for the first
    token of a row, which no model predicts. Hinton et al. 2015, arXiv:1503.02531
    """
    teacher, decided = run.model("teacher"), batch.mask[:, 1:]
    # the state one position before a token predicts it
    hidden, wanted = (x[:, :-1][decided] for x in (out.hidden, batch.columns["teacher.hidden"]))  # (n, d)
    losses = out.hidden.new_zeros(decided.shape).masked_scatter(decided, run.policy.divergences(hidden, teacher, wanted))
    return F.pad(losses, (1, 0))
