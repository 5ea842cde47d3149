"""Skywork-o1-Open-PRM: a value head, of one linear map with a bias, read at the line break that ends a step; its sigmoid.

    {bos}{prompt}\\n   then for each step its tokens and the last token of "\\n"

Prompt and steps are tokenised each by itself, as its published code does (github.com/SkyworkAI/skywork-o1-prm-inference). A line
break within a step ends no step here: there, each would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from rewardlab.prm.head import chance_of
from rewardlab.prm.scorer import Encoded, StepScorer, by_row


class SkyworkScorer(StepScorer):
    """A trunk with `v_head.summary`."""

    convention = "skywork"
    separator = "\n"

    def __init__(self, model: Any, tokenizer: Any, device: torch.device, head: nn.Module):
        super().__init__(model, tokenizer, device)
        self.head = head.to(device)

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        # the published code calls the tokenizer with its special tokens; Qwen's adds none
        ids = self.tokenizer(f"{self.tokenizer.bos_token or ''}{prompt}\n", verbose=False)["input_ids"]
        closing, at = self.tokenizer(self.separator)["input_ids"][-1], []
        for step in steps:
            ids = [*ids, *self.tokenizer(step, verbose=False)["input_ids"], closing]
            at.append(len(ids) - 1)
        return Encoded(ids, at)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(self.head(self._hidden_at(rows))).tolist(), rows)
