"""Passes of a language model over whole texts, in parts for which there is memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs, TokenCount, Trajectory
from rewardlab.errors import TooLong
from rewardlab.policies.packing import pad
from rewardlab.policies.room import LEAST_TOKENS, fitting_tokens, in_parts
from rewardlab.policies.vectors import NO_TOKEN, ReadsVectors, tokens_decided
from rewardlab.util.device import free_memory
from rewardlab.util.passes import SCORE_TOKENS, by_tokens
from rewardlab.util.tempered import tempered


class Passes(ReadsVectors):
    """What text policies compute of whole texts. Subclasses add `_forward` and `reading_bytes`."""

    device: torch.device
    context: int
    token_count: TokenCount
    alone = True
    """Whether its passes need no other process."""
    sees = False
    """Whether it reads pictures beside the tokens of a batch."""
    temperature = 1.0
    """By which the logits are divided in `evaluate`: that of sampling, while a policy gradient is computed (`util/tempered.py`)."""
    most_tokens = 1 << 40
    """Padded tokens in a pass without gradient at most: fewer after memory has run out."""

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        """The model on rows of ids (B, T): log-probs and entropies where `mask`, values and hidden states everywhere."""
        raise NotImplementedError

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and entropies where `batch.mask`, values and hidden states everywhere; (B, T), with gradient.

        Without gradient it takes as many passes as memory asks for.
        """
        self._check_width(batch.width, [t for t, _ in batch.rows])
        self.token_count.scored += int(batch.length.sum())
        every = list(range(len(batch)))
        if torch.is_grad_enabled() or not self.alone:
            return self._outputs(batch, every, wants, per_token)
        return self._in_parts(batch, every, wants, per_token)

    def _check_width(self, width: int, rows: Sequence[Trajectory]) -> None:
        """Raise TooLong for a text beyond the model's context: it has no positions there, or was never taught them."""
        long = max(rows, key=len) if width > self.context and rows else None
        if long is not None and len(long) > self.context:
            raise TooLong(
                f"a text of {len(long)} tokens exceeds the model's context of {self.context}: {long.problem.question[:80]!r}; "
                "leave it out, or shorten it"
            )

    def _outputs(self, batch: Batch, rows: list[int], wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        """The outputs of neighbouring rows of a batch, in one pass."""
        part, width = slice(rows[0], rows[-1] + 1) if rows else slice(0), batch.width
        if len(rows) < len(batch):
            width = int(batch.length[part].max())
        with self._reading([t for t, _ in batch.rows[part]]):
            mask = tokens_decided(batch)[part, :width]
            return self._forward(batch.ids[part, :width], batch.length[part], mask, wants, per_token)

    def _in_parts(self, batch: Batch, rows: list[int], wants: Sequence[str], per_token: Sequence[Any]) -> Outputs:
        found: dict[str, Tensor] = {}

        def work(part: list[int]) -> None:
            for name, x in self._outputs(batch, part, wants, per_token).tensors().items():
                if len(part) == len(rows):
                    found[name] = x
                    continue
                if name not in found:
                    found[name] = x.new_zeros(len(rows), batch.width, *x.shape[2:])
                found[name][part[0] : part[-1] + 1, : x.shape[1]] = x

        width = max(batch.width, 1)
        together = max(1, self.tokens_at_once(min(self.most_tokens, max(1, len(rows)) * width)) // width)
        parts = [rows[i : i + together] for i in range(0, len(rows), together)] or [rows]
        if fewer := in_parts(parts, work):
            self.most_tokens = fewer * width
        return Outputs.of(found)

    @torch.no_grad()
    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position, (len,); 0 for the first, which no model predicts, and for vectors, which are no tokens."""
        self._check_width(max(map(len, trajectories), default=0), trajectories)
        self.token_count.scored += sum(map(len, trajectories))
        logprobs: list[np.ndarray] = [np.zeros(0, np.float32)] * len(trajectories)

        def score(part: list[int]) -> None:
            ids, length = pad([trajectories[i].ids for i in part], self.device)
            real = (torch.arange(ids.shape[1], device=self.device) < length[:, None]) & (ids != NO_TOKEN)
            with self._reading([trajectories[i] for i in part]), tempered(1.0, self):
                table = self._forward(ids, length, real, ("logprobs",)).logprobs.cpu().numpy()
            for row, i in enumerate(part):
                logprobs[i] = table[row, : len(trajectories[i])]

        tokens = self.tokens_at_once(min(SCORE_TOKENS, self.most_tokens))
        if in_parts(by_tokens([len(t) for t in trajectories], tokens), score, alone=self.alone):
            self.most_tokens = tokens // 2
        return logprobs

    def tokens_at_once(self, most: int) -> int:
        """How many tokens a pass without gradient may hold now: the most of `most`, half of it ... for which memory is free."""
        # what is never divided needs no look at the machine
        return fitting_tokens(most, self.reading_bytes, self.free_memory()) if most > LEAST_TOKENS else most

    def reading_bytes(self, tokens: int) -> int:
        """Roughly the bytes that a pass without gradient over so many tokens takes at a time."""
        raise NotImplementedError

    def free_memory(self) -> int:
        """The bytes that are free for a pass, or for sampling."""
        return free_memory(self.device)
