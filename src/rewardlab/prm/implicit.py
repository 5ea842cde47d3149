"""Scores from the likelihood of the steps themselves: against a reference model (implicit rewards), or plain.

    implicit     r_k = beta * sum over the tokens of step k of log(model / reference);      its score is sigmoid(r_k), or, of a
                 model that was taught by outcomes, sigmoid(r_1 + ... + r_k)
    likelihood   the geometric mean of the probabilities of step k's tokens                 a baseline without any training

Implicit process rewards: Yuan et al. 2024, arXiv:2412.01981. `beta` is part of the model: use the one that it was trained with.
The layout is that of our policies (`head.py`, chat); the separator after a step counts as part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Message, TokenCount
from rewardlab.policies.head import token_logprobs
from rewardlab.policies.hf.model import vocabulary
from rewardlab.prm.head import chat_prompt, steps_after
from rewardlab.prm.scorer import Encoded, StepScorer

BETA = 0.05


class LikelihoodScorer(StepScorer):
    """How likely the model finds each step: the geometric mean over its tokens."""

    convention = "likelihood"
    separator = "\n"

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        return steps_after(chat_prompt(self.tokenizer, (Message("user", prompt),)), self.tokenizer, steps, self.separator)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        return [[float(step.mean().exp()) for step in by_step(x, row)] for x, row in zip(self._logprobs(rows), rows, strict=True)]

    def _logprobs(self, rows: Sequence[Encoded], model: Any = None) -> list[Tensor]:
        """For each row, (len,) the log-prob of each token; 0 for the first, which no model predicts."""
        model, (ids, real) = model or self.model, self._padded(rows)
        hidden = model.base_model(input_ids=ids, attention_mask=real, use_cache=False).last_hidden_state
        weight, bias = vocabulary(model)
        if bias is not None:
            # a bias is a column of the matrix for an input that is always 1
            hidden, weight = F.pad(hidden, (0, 1), value=1.0), torch.cat((weight, bias[:, None]), 1)
        # a row at a time: all of them would need the logits of padding too
        scored = (
            token_logprobs(h[: len(row.ids) - 1], weight, i[1 : len(row.ids)])[0]
            for h, i, row in zip(hidden, ids, rows, strict=True)
        )
        return [F.pad(x, (1, 0)).float().cpu() for x in scored]


class ImplicitScorer(LikelihoodScorer):
    """The log-ratio of two models, times beta.

    reference: a causal model with the same tokenizer.  sums: a step's score is that of all tokens up to its end: the chance that
    the solution so far is right, of a model that was taught whether whole solutions are.
    """

    convention = "implicit"

    def __init__(
        self, model: Any, tokenizer: Any, device: torch.device, reference: Any, beta: float = BETA, sums: bool = False
    ):  # fmt: skip
        super().__init__(model, tokenizer, device)
        self.reference, self.beta, self.sums = reference.to(device).eval(), beta, sums
        self.token_count = TokenCount()

    def length(self, encoded: Encoded) -> int:
        # both models read it
        return 2 * len(encoded.ids)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        both = zip(self._logprobs(rows), self._logprobs(rows, self.reference), rows, strict=True)
        ratios = [torch.stack([step.sum() for step in by_step(ours - theirs, row)]) for ours, theirs, row in both]
        return [(self.beta * (of.cumsum(0) if self.sums else of)).sigmoid().tolist() for of in ratios]


def by_step(tokens: Tensor, row: Encoded) -> list[Tensor]:
    """Numbers of tokens, cut into those of each step with its separator."""
    return [tokens[a:b] for a, b in pairwise((row.start, *(at + 1 for at in row.at)))]
