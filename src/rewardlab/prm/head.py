"""Scores from a head at the last token of each step: TRL's process reward models, and ours.

Two layouts of a solution, and they are not interchangeable (a model that learnt one is off in the other):

    trl    [bos] prompt, then for each step its tokens and those of the separator          TRL's PRMTrainer, in which it trained
    chat   the chat template's prompt (or the prompt and a line break, without one), then the same      what our policies read

Steps and separators are tokenised each by itself, as TRL does: joined as text they could give other tokens. A step's score is
read at the last token of its separator. A head with two labels gives softmax[1], one with a single number its sigmoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rewardlab.core import Message
from rewardlab.errors import unknown
from rewardlab.policies.chat import dialogue
from rewardlab.policies.tokenizer import encoded
from rewardlab.prm.scorer import Encoded, StepScorer, by_row

LAYOUTS = ("trl", "chat")


class HeadScorer(StepScorer):
    """A trunk with a head.  head: (n, hidden) -> (n, 1) log-odds, or (n, 2) logits of wrong and right."""

    convention = "head"

    def __init__(
        self, model: Any, tokenizer: Any, device: torch.device, head: nn.Module, layout: str = "trl", separator: str = "\n"
    ):  # fmt: skip
        super().__init__(model, tokenizer, device)
        if layout not in LAYOUTS:
            raise unknown("layout of a scorer", layout, LAYOUTS)
        self.head, self.layout, self.separator = head.to(device), layout, separator

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        return steps_after(self._prompt(prompt), self.tokenizer, steps, self.separator)

    def _prompt(self, prompt: str) -> list[int]:
        if self.layout == "chat":
            return chat_prompt(self.tokenizer, (Message("user", prompt),))
        bos = self.tokenizer.bos_token_id
        return [*([] if bos is None else [bos]), *self._plain(prompt)]

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(self.head(self._hidden_at(rows))).tolist(), rows)


def chance_of(logits: Tensor) -> Tensor:
    """(n,) from the output of a head: sigmoid of one number, or softmax of two, of which the second is `right`."""
    logits = logits.float()
    return logits[:, 0].sigmoid() if logits.shape[1] == 1 else logits.softmax(1)[:, 1]


def steps_after(prompt: Sequence[int], tokenizer: Any, steps: Sequence[str], separator: str) -> Encoded:
    """A prompt's tokens with those of the steps after it, each closed by the separator, at whose last token its score is read."""
    closing, ids, at = tokenizer(separator, add_special_tokens=False)["input_ids"], list(prompt), []
    for step in steps:
        ids += tokenizer(step, add_special_tokens=False, verbose=False)["input_ids"] + closing
        at.append(len(ids) - 1)
    return Encoded(ids, at, len(prompt))


def chat_prompt(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of a prompt as a policy reads it (`policies/text.py`)."""
    return encoded(tokenizer, [dialogue(tokenizer, messages)])[0]
