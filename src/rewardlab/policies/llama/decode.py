"""Generation for the lean policy: a preallocated cache, equal prompts computed once, finished rows replaced by waiting ones.

On CPUs small models are sampled by one thread per core, each with rows of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.core import Sampling, Trajectory
from rewardlab.policies.replies import Replies, Writes
from rewardlab.policies.sampler import sample
from rewardlab.policies.scripting import scripted

from .attention import causal_attention
from .decode_step import fold, next_logits, step_layers
from .model import Llama

MAX_ROWS = {"cpu": 256, "cuda": 1024}
"""Replies sampled at a time: the cache of keys and values holds so many."""
PREFILL_TOKENS = 8192
"""Padded prompt tokens in one forward pass, which bounds its activations."""
ROWS_MULTIPLE = 8
"""The batch shrinks to multiples of this: a CPU's matrix library prepares each new shape for a fraction of a ms."""
SPAN_MULTIPLE = 16
"""The cache grows by so many positions at a time: growing copies it, since its matrices must be contiguous."""
SMALL_BYTES = 64 << 20
"""Bytes of weights that stay in the processor's cache."""
WORKER_ROWS = {"small": 16, "large": 32}
"""The fewest rows worth a thread. Threads that sample rows of their own never wait for each other; sharing the operations of a
small model, they would wait most of the time. Every thread reads a large model's weights from memory, which pays only with many
rows."""


class Generator(Writes, Protocol):
    """What generation needs from a policy."""

    model: Llama
    dtype: torch.dtype
    device: torch.device

    def parameters(self) -> list[nn.Parameter]: ...

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None: ...


@torch.no_grad()
def generate(policy: Generator, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
    """One reply for each trajectory, in order."""
    if not trajectories:
        return []
    for t in trajectories:
        policy.check_fits(t, sampling.max_new)
    replies = Replies(policy, len(trajectories), sampling, rng, policy.model.shape.vocab)
    with torch.inference_mode():
        weights, prompts = fold(policy.model, policy.dtype), [t.ids for t in trajectories]
        shares = np.array_split(np.arange(len(prompts)), workers(policy, len(prompts), sampling))
        if len(shares) == 1:
            _Decoder(policy, weights, prompts, replies, shares[0]).run()
        else:
            _side_by_side([_Decoder(policy, weights, prompts, replies, share) for share in shares])
    return replies.added_to(trajectories)


def workers(policy: Generator, rows: int, sampling: Sampling) -> int:
    """How many threads sample, each its own rows."""
    # if sampling stops after the first `enough` rows, which rows those are must not depend on how fast a thread runs
    if policy.device.type != "cpu" or sampling.enough:
        return 1
    size = sum(p.numel() for p in policy.parameters()) * torch.empty(0, dtype=policy.dtype).element_size()
    least = WORKER_ROWS["small" if size <= SMALL_BYTES else "large"]
    return max(1, min(torch.get_num_threads(), rows // least))


def _side_by_side(decoders: list[_Decoder]) -> None:
    """Run each decoder in its own thread, whose operations use one core."""
    previous = torch.get_num_threads()

    def run(decoder: _Decoder) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():
            decoder.run()

    try:
        with ThreadPoolExecutor(len(decoders)) as pool:
            # list() waits for all of them, and raises what a thread raised
            list(pool.map(run, decoders))
    finally:
        # set_num_threads also holds for threads that start later: put it back for training
        torch.set_num_threads(previous)


class _Decoder:
    """Samples the replies to some rows, as many at a time as there are slots (continuous batching).

    waiting: rows without a slot; slots: the row that runs in each slot, -1 for none; position: (slots,) of the token fed next.
    cache: of each layer (2, slots, Hkv, span, d), keys and values; mask: (slots, span), 0 where a row may attend, else -inf.
    """

    def __init__(self, policy: Generator, weights: SimpleNamespace, prompts: list[np.ndarray], replies: Replies, rows: np.ndarray):
        self.policy, self.weights, self.prompts, self.replies = policy, weights, prompts, replies
        self.waiting, self.total, self.finished = rows.tolist(), len(rows), 0
        size, shape = min(len(rows), MAX_ROWS.get(policy.device.type, 256)), policy.model.shape
        self.slots = np.full(size, -1)
        self.position, self.last = np.zeros(size, np.int64), np.zeros(size, np.int64)
        zeros = partial(torch.zeros, dtype=policy.dtype, device=policy.device)
        self.cache = [zeros(2, size, shape.kv_heads, 0, shape.head_dim) for _ in range(shape.layers)]
        self.mask = zeros(size, 0)
        self.layers, self.next_logits = step_layers(weights), scripted(next_logits, policy.device.type)

    def run(self) -> None:
        enough = self.replies.sampling.enough or self.total
        while self.finished < enough and (self.waiting or (self.slots >= 0).any()):
            self._admit()
            self._step()

    # ---- rows in and out ---------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Fill free slots with waiting rows, an eighth of the slots at once; when none wait, drop free slots instead."""
        free = np.flatnonzero(self.slots < 0)
        size = len(self.slots)
        if not self.waiting:
            live = np.flatnonzero(self.slots >= 0)
            # rounded up: a few free slots stay, and are computed in vain
            size_after = -(-len(live) // ROWS_MULTIPLE) * ROWS_MULTIPLE
            # compacting copies the cache, which pays only if a quarter of the slots goes
            if size_after <= size * 3 // 4:
                self._compact(np.sort(np.concatenate((live, free[: size_after - len(live)]))))
            return
        # prefill is cheaper per row with many rows, and stops decoding meanwhile: wait for enough free slots
        if len(free) < min(size, len(self.waiting), max(1, size // 8)):
            return
        admitted, self.waiting = self.waiting[: len(free)], self.waiting[len(free) :]
        filled = free[: len(admitted)]
        self.slots[filled] = admitted
        self.last[filled] = [self.prompts[r][-1] for r in admitted]
        self.position[filled] = [len(self.prompts[r]) - 1 for r in admitted]
        self._prefill(filled)

    def _compact(self, remaining: np.ndarray) -> None:
        index = torch.from_numpy(remaining).to(self.mask.device)
        for i, table in enumerate(self.cache):
            self.cache[i] = table[:, index]
        self.mask = self.mask[index]
        self.slots, self.position, self.last = self.slots[remaining], self.position[remaining], self.last[remaining]

    def _grow(self, span: int) -> None:
        """Make room for `span` positions. Zeros, not uninitialised memory: a masked key has weight 0, and 0 * NaN is NaN."""
        more = -(-span // SPAN_MULTIPLE) * SPAN_MULTIPLE - self.mask.shape[1]
        if more > 0:
            for i, table in enumerate(self.cache):
                self.cache[i] = F.pad(table, (0, 0, 0, more))
            self.mask = F.pad(self.mask, (0, more), value=-torch.inf)

    def _prefill(self, filled: np.ndarray) -> None:
        """Compute each different prompt once, all but its last token, into the cache of every slot that has it.

        The last token of the prompt is fed by the first decoding step, so there is a single path for sampling.
        """
        slots_of_prompt: dict[bytes, list[int]] = {}
        for slot in filled:
            slots_of_prompt.setdefault(self.prompts[self.slots[slot]].tobytes(), []).append(int(slot))
        # shortest first, and parts are taken from the end: prompts of similar length go together, the longest first
        groups = sorted(slots_of_prompt.values(), key=lambda g: len(self.prompts[self.slots[g[0]]]))
        self._grow(int(self.position[filled].max()) + 1)
        visible = torch.arange(self.mask.shape[1]) < torch.from_numpy(self.position[filled])[:, None]
        # also hides what the slot's previous reply left in the cache
        self.mask[torch.from_numpy(filled)] = torch.where(visible, 0.0, -torch.inf).to(self.mask)
        while groups:
            width = len(self.prompts[self.slots[groups[-1][0]]]) - 1
            n = max(1, PREFILL_TOKENS // max(1, width))
            part, groups = groups[-n:], groups[:-n]
            # a prompt of one token has nothing to compute here
            if width > 0:
                self._prefill_part(part, width)

    def _prefill_part(self, part: list[list[int]], width: int) -> None:
        device = self.policy.device
        table = np.zeros((len(part), width), np.int64)
        for i, group in enumerate(part):
            prompt = self.prompts[self.slots[group[0]]][:-1]
            table[i, : len(prompt)] = prompt
        source = torch.tensor([i for i, group in enumerate(part) for _ in group], device=device)
        target = torch.tensor([slot for group in part for slot in group], device=device)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (x.view(len(part), width, *x.shape[1:]) for x in (q, k, v))
            # (B, T, Hkv, d) to (2, slots, Hkv, T, d), each prompt copied to all slots that have it
            self.cache[layer][:, target, :, :width] = torch.stack((k, v)).transpose(2, 3)[:, source]
            # scale 1: `fold` has put 1/sqrt(d) into the query weights
            return causal_attention(q, k, v, scale=1.0).flatten(0, 1)

        # padding on the right is computed too, but causal attention keeps it from the prompt, and the mask from replies
        positions = torch.arange(width, device=device).repeat(len(part))
        self.policy.model.trunk(self.weights, torch.from_numpy(table).to(device).view(-1), positions, attend)

    # ---- one token for every slot ------------------------------------------------------------------------------------

    def _step(self) -> None:
        self._grow(int(self.position.max()) + 1)
        device, w, shape = self.policy.device, self.weights, self.policy.model.shape
        last, position = torch.from_numpy(self.last).to(device), torch.from_numpy(self.position).to(device)
        logits = self.next_logits(
            last, position, self.mask, self.cache, w.embed, (w.cos, w.sin), self.layers, w.head, shape.heads, shape.eps
        )
        sampled = sample(logits, self.replies.sampling, self.replies.uniform(self.slots))
        # the only wait for the device in a step: ids and log-probs are needed to decide which rows ended
        self._record(*(x.cpu().numpy() for x in sampled))

    def _record(self, ids: np.ndarray, raw: np.ndarray, sampled: np.ndarray) -> None:
        live = np.flatnonzero(self.slots >= 0)
        self.last[live] = ids[live]
        self.position[live] += 1
        ended = live[self.replies.record(self.slots[live], ids[live], raw[live], sampled[live])]
        # a free slot is still computed; at position 0 it overwrites only its own cache, which its next prompt fills anew
        self.slots[ended], self.last[ended], self.position[ended] = -1, 0, 0
        self.finished += len(ended)
