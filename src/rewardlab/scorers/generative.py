"""Scores of a language model that says of each step, as a turn of a chat, whether it is right: RLHFlow's, and Yes or No.

    user: {prompt} {step 1}    assistant: +    user: {step 2}    assistant: +    ...

A step's score is softmax(logits of the two words)[right] at the token before the assistant's word. The answers before it are
always `right`: the model judges each step as if those before it had been (RLHFlow's published evaluation, Dong et al. 2024,
arXiv:2405.07863, github.com/RLHFlow/RLHF-Reward-Modeling, math-rm). RLHFlow's words are + and -; ours are Yes and No, after a
question, so that an instruction-tuned model can judge untrained (P(Yes) as a verifier: Zhang et al. 2024, arXiv:2408.15240).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rewardlab.errors import RewardlabError

from .head import chance_of
from .scorer import Encoded, StepScorer, by_row
from .step_tokens import word_logits

PLACE = "\u241fWORD\u241f"
"""Stands for the assistant's word while a chat is rendered."""


class GenerativeScorer(StepScorer):
    """Yes or No after each step."""

    convention = "generative"
    words: tuple[str, str] = ("Yes", "No")
    first = "{prompt}\n\nHere is a solution, step by step. Say of each step whether it is right: Yes or No.\n\n{step}"

    def __init__(self, model: Any, tokenizer: Any, device: torch.device):
        super().__init__(model, tokenizer, device)
        if not tokenizer.chat_template:
            raise RewardlabError(f"a scorer as {self.convention!r} needs a tokenizer with a chat template, and this one has none")
        right, wrong = (self._plain(word)[-1] for word in self.words)
        if right == wrong:
            raise RewardlabError(f"the words {' and '.join(self.words)} end with the same token: they cannot be told apart")
        self.right_id, self.pair = right, torch.tensor([wrong, right], device=device)

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        ids, at = [], []
        # the chat is tokenised in pieces that begin and end at an assistant's word, so that the word is a token of its own
        for piece in self._pieces(prompt, steps)[:-1]:
            ids += self._plain(piece)
            at.append(len(ids) - 1)
            ids.append(self.right_id)
        # nothing is read from the last word on
        return Encoded(ids[:-1], at)

    def _pieces(self, prompt: str, steps: Sequence[str]) -> list[str]:
        """The rendered chat, cut at the assistant's words."""
        turns: list[dict[str, str]] = []
        for k, step in enumerate(steps):
            text = step if k else self.first.format_map({"prompt": prompt, "step": step})
            turns += [{"role": "user", "content": text}, {"role": "assistant", "content": PLACE}]
        return self.tokenizer.apply_chat_template(turns, tokenize=False).split(PLACE)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(word_logits(self.model, self._hidden_at(rows), self.pair)).tolist(), rows)


class RLHFlowScorer(GenerativeScorer):
    """+ or - after each step."""

    convention = "rlhflow"
    words = ("+", "-")
    first = "{prompt} {step}"
