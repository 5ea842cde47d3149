"""Generative step scorers: a chat turn per step, as RLHFlow's, and Yes or No.

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

from rewardlab.prm.head import chance_of
from rewardlab.prm.scorer import Encoded, NoScorer, StepScorer, by_row
from rewardlab.prm.step_tokens import word_logits
from rewardlab.util.outputs import last_tokens

PLACE = "\u241fWORD\u241f"
"""Stands for the assistant's word while a chat is rendered."""


WORDS = ("Yes", "No")
QUESTION = "{prompt}\n\nHere is a solution, step by step. Say of each step whether it is right: Yes or No.\n\n{step}"


class GenerativeScorer(StepScorer):
    """Yes or No after each step."""

    convention = "generative"
    words: tuple[str, str] = WORDS
    first = QUESTION

    def __init__(self, model: Any, tokenizer: Any, device: torch.device):
        super().__init__(model, tokenizer, device)
        self.pair = torch.tensor(word_ids(tokenizer, self.words), device=device)

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        row = judged_chat(self.tokenizer, prompt, steps, self.words, self.first)
        # nothing is read from the last word on
        return Encoded(row.ids[:-1], row.at)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return by_row(chance_of(word_logits(self.model, self._hidden_at(rows), self.pair)).tolist(), rows)


class RLHFlowScorer(GenerativeScorer):
    """+ or - after each step."""

    convention = "rlhflow"
    words = ("+", "-")
    first = "{prompt} {step}"


def word_ids(tokenizer: Any, words: tuple[str, str] = WORDS) -> tuple[int, int]:
    """The tokens of the wrong and of the right word: the last of each."""
    if not tokenizer.chat_template:
        raise NoScorer("a model that says of each step whether it is right needs a chat template, and this one has none")
    right, wrong = last_tokens(tokenizer, words)
    if right == wrong:
        raise NoScorer(f"the words {' and '.join(words)} end with the same token: they cannot be told apart")
    return wrong, right


def judged_chat(
    tokenizer: Any, prompt: str, steps: Sequence[str], words: tuple[str, str] = WORDS, first: str = QUESTION
) -> Encoded:
    """A solution as a chat in which each step is judged right; each place to score is the token before such a word.

    The chat is tokenised in pieces that end at an assistant's word, so that the word is a token of its own.
    """
    turns: list[dict[str, str]] = []
    for k, step in enumerate(steps):
        text = step if k else first.format_map({"prompt": prompt, "step": step})
        turns += [{"role": "user", "content": text}, {"role": "assistant", "content": PLACE}]
    (_, right), ids, at = word_ids(tokenizer, words), [], []
    for piece in tokenizer.apply_chat_template(turns, tokenize=False).split(PLACE)[:-1]:
        ids += tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
        at.append(len(ids) - 1)
        ids.append(right)
    return Encoded(ids, at)
