"""Requirements on models that decide jointly, and the logits of candidates from their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError


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
