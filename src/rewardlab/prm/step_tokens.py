"""Scores read at a token that marks the end of a step: Math-Shepherd and Qwen2.5-Math-PRM.

Math-Shepherd (Wang et al. 2024, arXiv:2312.08935; peiyi9979/math-shepherd-mistral-7b-prm): a causal model. After each step comes
" ки"; of the logits there, for the token after it, those of "+" and "-" are compared:

    {prompt} Step 1: {step} ки\\nStep 2: {step} ки\\n...          P(right) = softmax(logits of +, -)[+]

"Step k: " is put before a step that does not begin so, since the model was trained on steps that do (PRMBench does the same).

Qwen2.5-Math-PRM (Zhang et al. 2025, arXiv:2501.07301): a chat, in whose reply each step is closed by <extra_0>; a two-layer head
with two labels is read at those tokens. The system message asks for reasoning step by step, as on its model card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from rewardlab.prm.head import chance_of
from rewardlab.prm.scorer import Encoded, NoScorer, StepScorer, by_row

_NUMBERED = re.compile(r"step\b", re.IGNORECASE)


class ShepherdScorer(StepScorer):
    """A causal model that writes + or - after a step token."""

    convention = "shepherd"
    mark = "ки"

    def __init__(self, model: Any, tokenizer: Any, device: torch.device):
        super().__init__(model, tokenizer, device)
        # the last token of each, as in the published code: a tokenizer of the Llama family puts a space token before the first
        self.mark_id, right, wrong = (tokenizer(text)["input_ids"][-1] for text in (self.mark, "+ +", "+ -"))
        if len(self._plain(self.mark)) != 1 or len({self.mark_id, right, wrong, tokenizer.unk_token_id}) < 4:
            raise NoScorer(f"its tokenizer has no tokens of their own for {self.mark}, + and -, as Math-Shepherd's has")
        self.words = torch.tensor([wrong, right], device=device)

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        named = (s if _NUMBERED.match(s) else f"Step {k}: {s}" for k, s in enumerate(map(str.strip, steps), 1))
        # with the special tokens that the tokenizer adds, as in the published code
        ids = self.tokenizer(f"{prompt} " + "\n".join(f"{step} {self.mark}" for step in named), verbose=False)["input_ids"]
        return Encoded(ids, [i for i, token in enumerate(ids) if token == self.mark_id])

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(word_logits(self.model, self._hidden_at(rows), self.words)).tolist(), rows)


class QwenScorer(StepScorer):
    """Qwen2ForProcessRewardModel: Qwen2 with a head of Linear, ReLU, Linear, read at <extra_0>."""

    convention = "qwen"
    mark = "<extra_0>"
    system = "Please reason step by step, and put your final answer within \\boxed{}."

    def __init__(self, model: Any, tokenizer: Any, device: torch.device, head: nn.Module):
        super().__init__(model, tokenizer, device)
        self.head, self.mark_id = head.to(device), tokenizer.convert_tokens_to_ids(self.mark)
        if self.mark_id in (None, tokenizer.unk_token_id) or not tokenizer.chat_template:
            raise NoScorer(f"its tokenizer lacks the token {self.mark} or a chat template, which Qwen2.5-Math-PRM's has")

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        messages = [
            {"role": "system", "content": self.system}, {"role": "user", "content": prompt},
            {"role": "assistant", "content": self.mark.join(steps) + self.mark},
        ]  # fmt: skip
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
        ids = self._plain(text)
        return Encoded(ids, [i for i, token in enumerate(ids) if token == self.mark_id])

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(self.head(self._hidden_at(rows))).tolist(), rows)


def word_logits(model: Any, hidden: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """(n, words): the logits of a few words alone, from hidden states (n, hidden). The head must be linear (`check_head`)."""
    output = model.get_output_embeddings()
    bias = getattr(output, "bias", None)
    return hidden @ output.weight[words].T + (0 if bias is None else bias[words])
