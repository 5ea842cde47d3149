"""What is done between the layers of a text policy: activations read, and changed; noise on the scales of norms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from rewardlab.core import Batch
from rewardlab.errors import RewardlabError
from rewardlab.policies.passes import Passes
from rewardlab.policies.perturbed import Place, perturbed


class HasLayers(Passes):
    """What text policies have for their decoder layers. Subclasses add `_scales`."""

    name: str
    depth: int
    """How many decoder layers it has."""
    _inserted: tuple[int, Callable[[Tensor], Tensor]] | None = None

    @contextmanager
    def inserted(self, layer: int, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """A context in which the model has `change` (n, hidden) -> (n, hidden) after a decoder layer, counted from 0.

        It is called with what the layer passes on for n real tokens, in float32: in sampling first those of prompts, then the
        newest token of each reply.
        """
        if not 0 <= layer < self.depth:
            raise RewardlabError(f"{self.name!r} has the decoder layers 0 to {self.depth - 1}: there is no layer {layer}")
        before, self._inserted = self._inserted, (layer, change)
        try:
            yield
        finally:
            self._inserted = before

    @torch.no_grad()
    def activations(self, batch: Batch, layer: int) -> Tensor:
        """(n, hidden) float32: what a decoder layer passes on for each of the n real tokens of the batch."""
        seen: list[Tensor] = []

        def remember(x: Tensor) -> Tensor:
            seen.append(x)
            return x

        self.token_count.scored += int(batch.length.sum())
        # in one pass: rows that begin alike share tokens, which the places of a table are found by
        with self.inserted(layer, remember):
            self._outputs(batch, list(range(len(batch))), ("hidden",))
        return seen[0]

    def activation_table(self, batch: Batch, layer: int) -> Tensor:
        """(B, T, hidden) float32: the same at the positions of the batch, 0 past the ends of rows."""
        return self._as_table(self.activations(batch, layer), batch)

    def _as_table(self, flat: Tensor, batch: Batch) -> Tensor:
        real = torch.arange(batch.ids.shape[1], device=flat.device) < batch.length[:, None]
        return flat.new_zeros((*real.shape, flat.shape[1])).masked_scatter(real[:, :, None], flat)

    def noised(self, sigma: float, rng: torch.Generator) -> AbstractContextManager[None]:
        """A context in which all that the model does, it does with N(0, sigma^2) added to the scales of the layers' norms."""
        return perturbed(self._scales(), sigma, rng)

    def _scales(self) -> list[Place]:
        """The scale vectors by which the norms of the layers multiply what attention and MLP read."""
        raise NotImplementedError
