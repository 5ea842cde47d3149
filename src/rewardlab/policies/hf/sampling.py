"""Sampling in place of transformers' own, within its `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.policies.replies import Replies
from rewardlab.policies.sampler import sample
from rewardlab.util.device import fetched, moved


class Sampler:
    """Samples in place of `generate`, so that the recorded log-probs are those of the distribution sampled from.

    As a logits processor it leaves one token possible, the one it sampled. rows: the rows in the current call of `generate`.
    """

    def __init__(self, replies: Replies):
        self.replies, self.rows = replies, np.zeros(0, np.int64)
        self.open = np.ones(len(replies.count), bool)

    @property
    def enough(self) -> bool:
        return int((~self.open).sum()) >= (self.replies.sampling.enough or len(self.open))

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        # `sample` overwrites its logits, and transformers may still use these
        live = np.flatnonzero(self.open[self.rows])
        pauses = self.replies.pauses(self.rows[live], scores[moved(live, scores.device)].float())
        sampled = sample(scores.clone(), self.replies.sampling, self.replies.uniform(self.rows))
        ids, raw, warped = (x[live] for x in fetched(*sampled))
        ended = self.replies.record(self.rows[live], ids, raw, warped, pauses)
        self.open[self.rows[live[ended]]] = False
        return torch.full_like(scores, -torch.inf).scatter_(1, sampled[0][:, None], 0.0)

    def restart(self, rows: np.ndarray) -> None:
        """Let rows begin anew, in another call of `generate`."""
        self.replies.forget(rows)
        self.open[rows] = True

    def over(self, input_ids: Tensor, scores: Any, **rest: Any) -> Tensor:
        return moved(~self.open[self.rows] | self.enough, input_ids.device)
