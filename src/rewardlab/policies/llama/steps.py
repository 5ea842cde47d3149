"""The forward passes of generation over a cache of keys and values, in PyTorch (in C++: `native_steps.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.policies.joint import plus_values
from rewardlab.policies.llama.attention import attention, causal_attention
from rewardlab.policies.llama.decode_step import logits_of, next_logits, packed, step_layers, through
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.sampler import nucleus
from rewardlab.policies.scripting import scripted
from rewardlab.util.device import moved

Inserted = tuple[int, Callable[[Tensor], Tensor]]
"""A layer, and what changes the (n, hidden) that it passes on."""
SPAN_MULTIPLE = 16
"""The cache grows by so many positions at a time: growing copies it, since its matrices must be contiguous."""


class Steps:
    """Prefill and decoding steps in PyTorch, for a number of slots.

    cache: of each layer (2, slots, Hkv, span, d), keys and values; mask: (slots, span), 0 where a row may attend, else -inf.
    """

    gaps = True
    """Whether a slot without a row is computed in vain."""

    prepared = staticmethod(packed)
    """Makes folded weights ready: once, for all threads."""

    def __init__(self, model: Llama, weights: SimpleNamespace, slots: int):
        """weights: folded (`fold`) and `prepared`."""
        s = model.shape
        self.model, self.weights, self.device = model, weights, weights.embed.device
        zeros = partial(torch.zeros, dtype=weights.embed.dtype, device=self.device)
        self.cache = [zeros(2, slots, s.kv_heads, 0, s.head_dim) for _ in range(s.layers)]
        self.mask = zeros(slots, 0)
        self.compile()

    def compile(self) -> None:
        self.layers, self.next_logits = step_layers(self.weights), scripted(next_logits, self.device.type)

    def grow(self, span: int) -> None:
        """Make room for `span` positions. Zeros, not uninitialised memory: a masked key has weight 0, and 0 * NaN is NaN."""
        more = -(-span // SPAN_MULTIPLE) * SPAN_MULTIPLE - self.mask.shape[1]
        if more > 0:
            for i, table in enumerate(self.cache):
                self.cache[i] = F.pad(table, (0, 0, 0, more))
            self.mask = F.pad(self.mask, (0, more), value=-torch.inf)

    def compact(self, remaining: np.ndarray) -> None:
        """Keep these slots alone."""
        index = moved(remaining, self.device)
        self.cache = [table[:, index] for table in self.cache]
        self.mask = self.mask[index]

    def admit(self, slots: np.ndarray, lengths: np.ndarray) -> None:
        """Rows of these lengths enter these slots: hides what the slots' previous rows left in the cache."""
        visible = torch.arange(self.mask.shape[1]) < torch.from_numpy(lengths)[:, None]
        seen = torch.where(visible, 0.0, -torch.inf).to(self.mask.dtype)
        self.mask[moved(slots, self.device)] = moved(seen, self.device)

    def prefill(self, prompts: Sequence[np.ndarray], slots: Sequence[Sequence[int]]) -> None:
        """Compute each prompt into the cache of all `slots` that have it."""
        width, device = max(map(len, prompts)), self.device
        table = np.zeros((len(prompts), width), np.int64)
        for i, prompt in enumerate(prompts):
            table[i, : len(prompt)] = prompt
        pairs = torch.tensor([(i, slot) for i, group in enumerate(slots) for slot in group])
        source, target = moved(pairs, device).unbind(1)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (x.view(len(prompts), width, *x.shape[1:]) for x in (q, k, v))
            # (B, T, Hkv, d) to (2, slots, Hkv, T, d), each prompt copied to all slots that have it
            table = self.cache[layer]
            # a cache may be finer than the weights, and what is written at indices must have its format
            table[:, target, :, :width] = torch.stack((k, v)).to(table.dtype).transpose(2, 3)[:, source]
            # scale 1: `fold` has put 1/sqrt(d) into the query weights
            return causal_attention(q, k, v, scale=1.0).flatten(0, 1)

        # padding on the right is computed too, but causal attention keeps it from the prompt, and the mask from replies
        positions = torch.arange(width, device=device).repeat(len(prompts))
        real = positions < moved(np.repeat([len(p) for p in prompts], width), device)
        self.model.trunk(self.weights, moved(table, device).view(-1), positions, attend, after=self.after(real))

    def prefill_rest(self, rests: Sequence[np.ndarray], starts: Sequence[int], slots: Sequence[Sequence[int]]) -> None:
        """The same of prompts whose first tokens, as many as `starts`, are in the cache of their `slots`."""
        n, width, device = len(rests), max(map(len, rests)), self.device
        first = moved(np.array([group[0] for group in slots]), device)
        begins, lengths = (moved(np.array(x), device) for x in (starts, [len(rest) for rest in rests]))
        ids = moved(np.stack([np.pad(rest, (0, width - len(rest))) for rest in rests]), device)
        column = torch.arange(width, device=device)
        # padding on the right repeats the last position: it is computed too, and written nowhere
        positions = begins[:, None] + torch.minimum(column, lengths[:, None] - 1)
        row, place = (column < lengths[:, None]).nonzero().unbind(1)
        span = int((begins + lengths).max())
        seen = torch.arange(span, device=device) <= positions[:, :, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (x.view(n, width, *x.shape[1:]) for x in (q, k, v))
            table = self.cache[layer]
            # two indices with a slice between them come first: (tokens, 2, Hkv, d)
            table[:, first[row], :, positions[row, place]] = torch.stack((k, v), 2)[row, place].to(table.dtype)
            keys, values = table[:, first, :, :span].to(q.dtype).transpose(2, 3)
            return attention(q, keys, values, seen, scale=1.0).flatten(0, 1)

        self.model.trunk(self.weights, ids.view(-1), positions.view(-1), attend)
        self.copy([(group[0], slot) for group in slots for slot in group[1:]], span)

    def copy(self, pairs: Sequence[tuple[int, int]], span: int) -> None:
        """Copy the first positions of slots to other slots: (from, to)."""
        if pairs:
            source, target = moved(np.array(pairs), self.device).unbind(1)
            for table in self.cache:
                table[:, target, :, :span] = table[:, source, :, :span]

    def after(self, real: Tensor) -> Inserted | None:
        """What is inserted after a layer, for the flat tokens that are `real`."""
        return None

    def step(self, live: np.ndarray, ids: np.ndarray, positions: np.ndarray) -> Tensor:
        """Float32 logits (n, V) of what follows `ids` at `positions`, (slots,), in the n `live` slots."""
        w, s = self.weights, self.model.shape
        last, position = moved(np.stack((ids, positions)), self.device)
        tables = (w.cos, w.sin)
        logits = self.next_logits(last, position, self.mask, self.cache, w.embed, tables, self.layers, w.head, s.heads, s.eps)
        return logits if len(live) == len(ids) else logits[moved(live, self.device)]


class ChangedSteps(Steps):
    """The same with something inserted after a layer, which is a function of Python: the layers run in two parts."""

    def __init__(self, model: Llama, weights: SimpleNamespace, slots: int, inserted: Inserted):
        super().__init__(model, weights, slots)
        self.layer, self.change = inserted

    def compile(self) -> None:
        super().compile()
        self.through = scripted(through, self.device.type)

    def after(self, real: Tensor) -> Inserted:
        return self.layer, lambda x: x.masked_scatter(real[:, None], self.change(x[real].float()).to(x.dtype))

    def step(self, live: np.ndarray, ids: np.ndarray, positions: np.ndarray) -> Tensor:
        w, s, cut = self.weights, self.model.shape, self.layer + 1
        rows = moved(live, self.device)
        last, position = moved(np.stack((ids, positions)), self.device)

        def part(x: Tensor, which: slice) -> Tensor:
            return self.through(
                x, position, self.mask, self.cache[which], (w.cos, w.sin), self.layers[which], s.heads, s.eps
            )  # fmt: skip

        x = part(F.embedding(last, w.embed), slice(cut))
        x[rows] = self.change(x[rows].float()).to(x.dtype)
        # what is inserted after the last layer has nothing to go through
        x = part(x, slice(cut, None)) if cut < s.layers else x
        return logits_of(x[rows], w.head, s.eps)


class Values(Steps):
    """A model with a value head, that says what the text of a row is worth with each of several next tokens."""

    def grow(self, span: int) -> None:
        # a candidate is fed one position further than the token before it
        super().grow(span + 1)

    def of(self, live: np.ndarray, positions: np.ndarray, candidates: Tensor) -> Tensor:
        """(n,) values with `candidates` (n,) at the positions after `positions` (slots,), in the n `live` slots.

        They take the place of what is fed there next, or of nothing: a later token overwrites them.
        """
        ids = np.zeros(len(positions), np.int64)
        ids[live] = candidates.cpu().numpy()
        return self.step(live, ids, positions + 1)[:, 0]


class JointSteps:
    """Several models on the same rows, each with a cache of its own: their logits are added, each times a weight.

    `Values` are added to the `candidates` tokens that are most likely by the sum of the others (`plus_values`). With a nucleus
    (top_p, ids that are always allowed) the second of two models adds nothing, and says which tokens may be sampled.
    """

    def __init__(
        self, members: Sequence[tuple[float, Steps]], candidates: int, inside: tuple[float, Sequence[int]] | None = None
    ):  # fmt: skip
        self.members, self.candidates, self.inside = members, candidates, inside
        self.gaps = any(steps.gaps for _, steps in members)

    def grow(self, span: int) -> None:
        for _, steps in self.members:
            steps.grow(span)

    def compact(self, remaining: np.ndarray) -> None:
        for _, steps in self.members:
            steps.compact(remaining)

    def admit(self, slots: np.ndarray, lengths: np.ndarray) -> None:
        for _, steps in self.members:
            steps.admit(slots, lengths)

    def prefill(self, prompts: Sequence[np.ndarray], slots: Sequence[Sequence[int]]) -> None:
        for _, steps in self.members:
            steps.prefill(prompts, slots)

    def step(self, live: np.ndarray, ids: np.ndarray, positions: np.ndarray) -> Tensor:
        found = [(weight, steps, steps.step(live, ids, positions)) for weight, steps in self.members]
        tables = [weight * table for weight, steps, table in found if not isinstance(steps, Values)]
        # the sizes of one family pad their vocabularies differently
        width = min(table.shape[1] for table in tables)
        if self.inside is not None:
            own, other = (table[:, :width] for table in tables)
            return own.masked_fill(~nucleus(other, *self.inside), -torch.inf)
        logits = torch.stack([table[:, :width] for table in tables]).sum(0)
        valued = [(weight, partial(steps.of, live, positions)) for weight, steps, _ in found if isinstance(steps, Values)]
        return plus_values(logits, self.candidates, valued) if valued else logits
