"""Several models that decide each token together: by the sum of their logits, to which the values of candidates are added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import TokenCount
from rewardlab.errors import RewardlabError
from rewardlab.policies.head import at_temperature, joint_head, token_logprobs


def check_joined(policy: Any, other: Any) -> None:
    """Raises RewardlabError unless a token id means the same to both, and one code runs both.

    The sizes of one family pad their vocabularies to different widths: logits beyond the narrowest are of no token.
    """
    if type(other) is not type(policy) or other.tokenizer.get_vocab() != policy.tokenizer.get_vocab():
        raise RewardlabError(
            f"the logits of {other.name!r} and {policy.name!r} cannot be added: both need the same tokenizer and vocabulary, "
            "and to be run by the same policy (write hf: before both)"
        )


Value = Callable[[Tensor], Tensor]
"""ids (n,) -> (n,), what the text of each row is worth with this token at its end."""


def plus_values(logits: Tensor, candidates: int, valued: Sequence[tuple[float, Value]]) -> Tensor:
    """The logits (n, V), with the sum of weight * (value - mean value) added to those of the most likely tokens of each row.

    The mean is over the `candidates`, so that no model makes them likelier than the other tokens, whose values nobody asks for.
    """
    ids = logits.topk(min(candidates, logits.shape[1]), 1).indices  # (n, k)
    for weight, value in valued:
        # one token of every row at a time: the next one takes its place in the cache
        values = torch.stack([value(column) for column in ids.unbind(1)], 1).to(logits)
        logits = logits.scatter_add(1, ids, weight * (values - values.mean(1, keepdim=True)))
    return logits


class Joins:
    """What text policies have for deciding with others."""

    token_count: TokenCount
    temperature: float
    _joined: Sequence[tuple[float, Any]] = ()
    _candidates = 20
    _nucleus: float | None = None
    """What part of the probability of the model that it is joined with bounds what may be sampled; None: logits are added."""

    @property
    def has_value_head(self) -> bool:
        """Whether it says what text is worth, and so writes none."""
        raise NotImplementedError

    def _for_head(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states, and the matrix that they are multiplied by."""
        raise NotImplementedError

    @contextmanager
    def joined(self, others: Sequence[tuple[float, Joins]], candidates: int = 20) -> Iterator[None]:
        """A context in which replies are sampled from the sum of this model's logits and those of others, each times a weight.

        A model with a value head has no logits: it adds its weight times the value of the text with each of the `candidates` most
        likely tokens (by the sum so far), minus the mean over those, to theirs. What `evaluate` and `score` give stays this model's
        own: see `joint_logprobs`. Raises RewardlabError for other vocabularies.
        """
        for _, other in others:
            check_joined(self, other)
        before = self._joined, self._candidates
        self._joined, self._candidates = others, candidates
        try:
            yield
        finally:
            self._joined, self._candidates = before

    @contextmanager
    def restricted(self, mask: Joins, top_p: float) -> Iterator[None]:
        """A context in which each token of a reply is among the top-p tokens of the model `mask`, or ends the reply.

        The log-probs of replies are then those of this model on such tokens alone (`TextPolicy.nucleus_logprobs`). Raises
        RewardlabError for other vocabularies.
        """
        before = self._nucleus
        with self.joined([(1.0, mask)]):
            self._nucleus = top_p
            try:
                yield
            finally:
                self._nucleus = before

    def joint_logprobs(self, hidden: Tensor, others: Sequence[tuple[float, Joins, Tensor]], ids: Tensor) -> Tensor:
        """(n,) log-probs of `ids` under the sum of logits, with gradient for the others alone; from the hidden states (n, d).

        The sum is divided by the temperature, as where replies are sampled.
        """
        own, head = self._for_head(hidden)
        members = [(1.0, own.detach(), head.detach()), *((weight, *other._for_head(h)) for weight, other, h in others)]
        states, heads = joint_head(members)
        return token_logprobs(at_temperature(states, self.temperature), heads, ids)[0]

    def count_generated(self, tokens: int) -> None:
        """Bill sampled tokens to this model, and to those that it is joined with; one that values reads each candidate too."""
        for model in (self, *(other for _, other in self._joined)):
            if model.has_value_head:
                model.token_count.scored += tokens * (1 + self._candidates)
            else:
                model.token_count.generated += tokens
