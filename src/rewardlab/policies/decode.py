"""Generation for the lean policy: a static cache, equal prompts computed once, finished rows replaced by waiting ones.

All bookkeeping per row is numpy, vectorised over rows; Python runs once per decoding step, never once per token and row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import Sampling, Trajectory, Turn
from .attention import causal_attention
from .sampler import draw

if TYPE_CHECKING:
    from .llama import LlamaPolicy
    from .text import TextPolicy

MAX_ROWS = {"cpu": 256, "cuda": 1024}
PREFILL_TOKENS = 8192


@torch.no_grad()
def generate(policy: LlamaPolicy, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
    """One reply for each trajectory, in order."""
    if not trajectories:
        return []
    for t in trajectories:
        policy.check_fits(t, sampling.max_new)
    with torch.inference_mode():
        work = _Decoder(policy, [t.ids for t in trajectories], sampling, rng)
        work.run()
    texts = policy.decode_all([work.ids[i, : work.count[i]] for i in range(len(trajectories))])
    return [work.result(i, t, texts[i]) for i, t in enumerate(trajectories)]


class _Decoder:
    """The state of one call: what each row has drawn, and the slots in which rows are running.

    ids, raw, sampled: (rows, max_new), what was drawn; count (rows,): how much of it.
    slots: the row that runs in each slot, -1 for none; position: (slots,) of the token fed next.
    """

    def __init__(self, policy: LlamaPolicy, prompts: list[np.ndarray], sampling: Sampling, rng: torch.Generator):
        self.policy, self.prompts, self.sampling, self.rng = policy, prompts, sampling, rng
        rows, n = len(prompts), sampling.max_new
        self.ids = np.zeros((rows, n), np.int64)
        self.raw, self.sampled = np.zeros((rows, n), np.float32), np.zeros((rows, n), np.float32)
        self.count = np.zeros(rows, np.int64)
        self.stops: list[str | None] = [None] * rows
        self.finished = 0
        self.waiting = list(range(rows))
        s = policy.model.shape
        size = min(rows, MAX_ROWS.get(policy.device.type, 256))
        span = max(len(p) for p in prompts) + n
        # zeros, not empty: what lies beyond a row's position is weighted by 0, and 0 times a stray NaN is a NaN
        make = partial(torch.zeros, dtype=policy.dtype, device=policy.device)
        self.keys = make((s.layers, size, s.kv_heads, s.head_dim, span))
        self.values = make((s.layers, size, s.kv_heads, span, s.head_dim))
        self.slots = np.full(size, -1)
        self.position = np.zeros(size, np.int64)
        self.last = np.zeros(size, np.int64)
        self.stop_at = StopMarks(policy, sampling, s.vocab)
        self.weights = policy.weights()

    def run(self) -> None:
        enough = self.sampling.enough or len(self.prompts)
        while self.finished < enough and (self.waiting or (self.slots >= 0).any()):
            self._admit()
            self._step()

    def result(self, row: int, trajectory: Trajectory, text: str) -> Trajectory:
        n = self.count[row]
        ids, raw, sampled = (x[row, :n].copy() for x in (self.ids, self.raw, self.sampled))
        turn = Turn(self.policy.name, ids, raw, sampled, text, step=self.policy.step)
        return trajectory.plus(turn, self.stops[row])

    # ---- rows in and out ---------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Fill free slots with waiting rows, a good number at once; when none wait, close the gaps instead."""
        free = np.flatnonzero(self.slots < 0)
        size = len(self.slots)
        if not self.waiting:
            if len(free) > size // 4:
                self._compact(np.flatnonzero(self.slots >= 0))
            return
        if len(free) < min(size, len(self.waiting), max(1, size // 8)):
            return
        taken, self.waiting = self.waiting[: len(free)], self.waiting[len(free) :]
        used = free[: len(taken)]
        self.slots[used] = taken
        self.last[used] = [self.prompts[r][-1] for r in taken]
        self.position[used] = [len(self.prompts[r]) - 1 for r in taken]
        self._prefill(used)

    def _compact(self, kept: np.ndarray) -> None:
        index = torch.from_numpy(kept).to(self.keys.device)
        self.keys, self.values = self.keys[:, index], self.values[:, index]
        self.slots, self.position, self.last = self.slots[kept], self.position[kept], self.last[kept]

    def _prefill(self, used: np.ndarray) -> None:
        """Compute each different prompt once, all but its last token, into the cache of every slot that has it.

        The last token of the prompt is fed by the first decoding step, so drawing has one path only.
        """
        same: dict[bytes, list[int]] = {}
        for slot in used:
            same.setdefault(self.prompts[self.slots[slot]].tobytes(), []).append(int(slot))
        groups = sorted(same.values(), key=lambda g: len(self.prompts[self.slots[g[0]]]))
        while groups:
            width = len(self.prompts[self.slots[groups[-1][0]]]) - 1
            n = max(1, PREFILL_TOKENS // max(1, width))
            part, groups = groups[-n:], groups[:-n]
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
            self.keys[layer, target, :, :, :width] = k.permute(0, 2, 3, 1)[source]
            self.values[layer, target, :, :width] = v.transpose(1, 2)[source]
            return causal_attention(q, k, v).flatten(0, 1)

        positions = torch.arange(width, device=device).repeat(len(part))
        self.policy.model.trunk(self.weights, torch.from_numpy(table).to(device).view(-1), positions, attend)

    # ---- one token for every slot ------------------------------------------------------------------------------------

    def _step(self) -> None:
        device, shape = self.policy.device, self.policy.model.shape
        span = int(self.position[self.slots >= 0].max()) + 1
        position = torch.from_numpy(np.minimum(self.position, span - 1)).to(device)
        late = torch.arange(span, device=device) > position[:, None]
        mask = torch.zeros(late.shape, dtype=self.policy.dtype, device=device).masked_fill_(late, -torch.inf)[:, None, None]
        index = torch.arange(len(self.slots), device=device)
        per_kv, scale = shape.heads // shape.kv_heads, shape.head_dim**-0.5

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.keys[layer], self.values[layer]
            keys[index, :, :, position] = k
            values[index, :, position] = v
            q = (q * scale).reshape(-1, shape.kv_heads, per_kv, shape.head_dim)
            weight = torch.matmul(q, keys[..., :span]).add_(mask).softmax(-1)
            return torch.matmul(weight, values[:, :, :span]).view(-1, shape.heads, shape.head_dim)

        last = torch.from_numpy(self.last).to(device)
        hidden = self.policy.model.trunk(self.weights, last, position, attend)
        logits = F.linear(hidden, self.weights.head).float()
        drawn = draw(logits, self.sampling, self.rng)
        self._record(*(x.cpu().numpy() for x in drawn))

    def _record(self, ids: np.ndarray, raw: np.ndarray, sampled: np.ndarray) -> None:
        live = np.flatnonzero(self.slots >= 0)
        rows = self.slots[live]
        at = self.count[rows]
        self.ids[rows, at], self.raw[rows, at], self.sampled[rows, at] = ids[live], raw[live], sampled[live]
        self.count[rows] += 1
        self.last[live] = ids[live]
        self.position[live] += 1
        for i in np.flatnonzero(self.stop_at.may_end[ids[live]] | (at + 1 >= self.sampling.max_new)):
            row = rows[i]
            stop = self.stop_at.why(self.ids[row, : self.count[row]])
            if stop is None and self.count[row] >= self.sampling.max_new:
                stop = "length"
            if stop is not None:
                self.stops[row] = stop
                self.slots[live[i]] = -1
                self.finished += 1


class StopMarks:
    """Which tokens may end a reply, so that text is looked at only where one was drawn."""

    def __init__(self, policy: TextPolicy, sampling: Sampling, vocab: int):
        self.policy, self.sampling = policy, sampling
        # a tokenizer may know more tokens than the model can draw
        self.may_end = np.zeros(max(vocab, len(policy.tokenizer)), bool)
        self.may_end[list(policy.ends)] = True
        closing = {s[-1] for s in sampling.stop} | ({"\n"} if sampling.stop_when else set())
        if not all(c.isascii() for c in closing):
            closing.add("\ufffd")  # how a token reads that holds only some bytes of a character
        if closing:
            for i, piece in enumerate(policy.all_pieces()):
                self.may_end[i] |= any(c in piece for c in closing)

    def why(self, ids: np.ndarray) -> str | None:
        if int(ids[-1]) in self.policy.ends:
            return "end"
        if not self.sampling.stop and not self.sampling.stop_when:
            return None
        text = self.policy.decode(ids)
        if any(s in text for s in self.sampling.stop):
            return "stop"
        if self.sampling.stop_when and self.sampling.stop_when(text):
            return "predicate"
        return None
