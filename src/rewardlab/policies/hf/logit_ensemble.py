"""Logits processors of a logit ensemble with a transformers model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.policies.attributes import mixed
from rewardlab.policies.hf.adapters import for_sampling
from rewardlab.policies.joint import plus_values
from rewardlab.policies.sampler import nucleus


def processors(
    joined: Sequence[tuple[float, Any]], candidates: int, mask: Tensor, inside: tuple[float, Sequence[int]] | None = None
) -> list[Any]:  # fmt: skip
    """Those of models that add logits, then those that add values.  mask: (rows, width) of prompts, padded on the left.

    inside: (top_p, ids that are always allowed): the one model that is joined adds nothing, and says what may be sampled.
    """
    if inside is not None:
        return [_Nucleus(inside, other, mask) for _, other in joined]
    logits = [_Logits(weight, other, mask) for weight, other in joined if not other.has_value_head]
    values = [(weight, _Values(other, mask)) for weight, other in joined if other.has_value_head]
    return [*logits, *([_AllValues(values, candidates)] if values else [])]


class _Reading:
    """Another model that reads along, with a cache of its own."""

    def __init__(self, policy: Any, mask: Tensor):
        self.policy, self.mask, self.cache = policy, mask, None

    def read(self, model: Any, input_ids: Tensor) -> Any:
        """What the model says of the tokens that it has not read yet."""
        more = input_ids.shape[1] - self.mask.shape[1]
        new = input_ids if self.cache is None else input_ids[:, -more:]
        self.mask = F.pad(self.mask, (0, more), value=1)
        places = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -new.shape[1] :]
        out = model(input_ids=new, attention_mask=self.mask, position_ids=places, past_key_values=self.cache, use_cache=True)
        self.cache = out.past_key_values
        return out


class _Said(_Reading):
    """The logits of another model."""

    def __init__(self, policy: Any, mask: Tensor):
        super().__init__(policy, mask)
        self.model = for_sampling(policy.whole, policy.dtype)

    def of(self, input_ids: Tensor) -> Tensor:
        """(rows, V) of the token that comes next."""
        return self.read(self.model, input_ids).logits[:, -1]


class _Nucleus(_Said):
    """Takes out what another model finds unlikely."""

    def __init__(self, inside: tuple[float, Sequence[int]], policy: Any, mask: Tensor):
        super().__init__(policy, mask)
        self.inside = inside

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return scores.masked_fill(~nucleus(self.of(input_ids).float(), *self.inside), -torch.inf)


class _Logits(_Said):
    """Adds another model's logits, times a weight."""

    def __init__(self, weight: float, policy: Any, mask: Tensor):
        super().__init__(policy, mask)
        self.weight = weight

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        found = self.of(input_ids).to(scores)
        # the sizes of one family pad their vocabularies differently: beyond the narrower is no token
        width = min(found.shape[1], scores.shape[1])
        sums = scores[:, :width] + self.weight * found[:, :width]
        return F.pad(sums, (0, scores.shape[1] - width), value=-torch.inf)


class _Values(_Reading):
    """What a model with a value head says of next tokens."""

    def of(self, input_ids: Tensor) -> Any:
        """Reads the text so far; returns ids (rows,) -> (rows,), what it is worth with such a token."""
        trunk = self.policy.model.base_model
        self.read(trunk, input_ids)
        mask = F.pad(self.mask, (0, 1), value=1)
        places = self.mask.sum(1, keepdim=True)

        def value(ids: Tensor) -> Tensor:
            cache: Any = self.cache
            hidden = trunk(
                input_ids=ids[:, None], attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True
            ).last_hidden_state  # fmt: skip
            # the next candidate, or the token that is chosen, takes its place
            cache.crop(-1)
            return mixed(F.linear(hidden[:, -1].float(), self.policy.value_head.float()), self.policy.attributes)

        return value


class _AllValues:
    """Adds the values of all models that have them to the candidates, which are chosen before any is added."""

    def __init__(self, members: Sequence[tuple[float, _Values]], candidates: int):
        self.members, self.candidates = members, candidates

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        valued = [(weight, member.of(input_ids)) for weight, member in self.members]
        return plus_values(scores, self.candidates, valued)
