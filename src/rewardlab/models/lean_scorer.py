"""Reward models of the Llama family on processors: the lean decoder reads what replies to a prompt begin with in common once.

Its products see no padding either. Six replies to a prompt of RM-Bench are 21% more tokens than their prompt once and the rest of
each, two of PandaLM 56%. Other families, other number formats, several labels and GPUs are left to transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Problem, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.outputs import forward_batch


class LeanScorer:
    """Hidden states and scores of token rows."""

    def __init__(self, policy: LlamaPolicy):
        self.policy = policy

    @classmethod
    def of(cls, found: Checkpoint, device: torch.device, dtype: torch.dtype, labels: int) -> LeanScorer | None:
        """None where transformers must run the model, and for a checkpoint that is none: transformers' reader says why."""
        if found.adapter or labels != 1 or device.type != "cpu" or dtype != torch.float32:
            return None
        with suppress(RewardlabError):
            policy = LlamaPolicy.load(found.folder, "cpu", "float32")
            return cls(policy) if policy.has_value_head else None
        return None

    def ends(self, rows: Sequence[Sequence[int]], alike: Sequence[int]) -> Tensor:
        """(B, hidden) after the last token of each row.  alike: numbers of rows that may begin alike; such rows are neighbours."""
        read = [self._row(rows[i], n) for i, n in enumerate(common(rows, alike))]
        hidden = self.policy.evaluate(forward_batch(read, self.policy.device), ("hidden",)).hidden
        assert hidden is not None
        return hidden[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in rows])]

    def scores(self, ends: Tensor) -> Tensor:
        """(B, 1) by the model's head."""
        head = self.policy.model.value_head
        assert head is not None
        return F.linear(ends, head)

    def _row(self, ids: Sequence[int], shared: int) -> Trajectory:
        # the layout shares what comes before the first decision of a row
        whole = np.asarray(ids, np.int64)
        return Trajectory(Problem(()), (Turn(None, whole[:shared]), Turn(self.policy.name, whole[shared:])))


def common(rows: Sequence[Sequence[int]], alike: Sequence[int]) -> list[int]:
    """Of each row, how many leading tokens it has in common with all rows of its number; one at least is its own."""
    shortest: dict[int, tuple[np.ndarray, int]] = {}
    for ids, group in zip(rows, alike, strict=True):
        first, n = shortest.setdefault(group, (np.asarray(ids), len(ids)))
        n = min(n, len(ids) - 1)
        apart = np.flatnonzero(first[:n] != np.asarray(ids[:n]))
        shortest[group] = (first, int(apart[0]) if len(apart) else n)
    return [shortest[group][1] for group in alike]
