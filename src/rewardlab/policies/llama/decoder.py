"""The replies to some rows, token by token: rows come into slots, prompts are computed there, and rows that ended make room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.policies.kept import Kept
from rewardlab.policies.llama.kept import copied_to, keep_copy, keep_whole
from rewardlab.policies.llama.steps import JointSteps, Steps
from rewardlab.policies.replies import Replies
from rewardlab.policies.sampler import sample
from rewardlab.util.device import fetched

PREFILL_TOKENS = 8192
"""Padded prompt tokens in one forward pass, which bounds its activations."""
SEEN_TOKENS = 4 * PREFILL_TOKENS
"""Tokens of whole texts, kept ones among them, of which the rests are computed in one forward pass."""
ROWS_MULTIPLE = 8
"""The batch shrinks to multiples of this: a CPU's matrix library prepares each new shape for a fraction of a ms."""


class Decoder:
    """Samples the replies to some rows, as many at a time as there are slots (continuous batching).

    waiting: rows without a slot; slots: the row that runs in each slot, -1 for none; position: (slots,) of the token fed next.
    held: the row whose text is in the cache of each slot, which may have ended.
    """

    def __init__(
        self, steps: Steps | JointSteps, slots: int, prompts: list[np.ndarray], replies: Replies, rows: np.ndarray,
        kept: Kept | None = None, room: int = 0,
    ):  # fmt: skip
        """kept: of earlier calls.  room: the bytes of what this decoder may add."""
        self.steps, self.prompts, self.replies, self.kept, self.room = steps, prompts, replies, kept, room
        self.waiting, self.finished = rows.tolist(), 0
        # of all rows, where rows have ended before memory ran out
        ended = len(replies.stops) - replies.stops.count(None)
        self.enough = max(0, replies.sampling.enough - ended) if replies.sampling.enough else len(rows)
        self.slots, self.held = np.full(slots, -1), np.full(slots, -1)
        self.position, self.last = np.zeros(slots, np.int64), np.zeros(slots, np.int64)

    def run(self) -> None:
        while self.finished < self.enough and (self.waiting or (self.slots >= 0).any()):
            self._admit()
            self._step()
        self._keep_all()

    # ---- rows in and out ---------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Fill free slots with waiting rows, an eighth of the slots at once; when none wait, drop free slots instead."""
        free = np.flatnonzero(self.slots < 0)
        size = len(self.slots)
        if not self.waiting:
            if not self.steps.gaps:
                return
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
        self._keep(filled)
        self.slots[filled] = self.held[filled] = admitted
        self.last[filled] = [self.prompts[r][-1] for r in admitted]
        self.position[filled] = [len(self.prompts[r]) - 1 for r in admitted]
        self._prefill(filled)

    def _compact(self, remaining: np.ndarray) -> None:
        self._keep(np.setdiff1d(np.arange(len(self.slots)), remaining))
        self.steps.compact(remaining)
        self.slots, self.held, self.position, self.last = (
            x[remaining] for x in (self.slots, self.held, self.position, self.last)
        )  # fmt: skip

    def _keep(self, slots: np.ndarray) -> None:
        """Keep what was computed in these slots, which is about to be lost."""
        # nobody knows yet in the first call whether another one comes: what costs a copy is left then
        if self.kept is None or self.kept.calls < 2 or not len(slots := slots[self.held[slots] >= 0]):
            return
        assert not isinstance(self.steps, JointSteps)
        rows = self.held[slots]
        texts = list(map(self._computed, rows))
        self.room -= keep_copy(self.kept, self.steps.cache, slots, texts, int(rows.min()), self.room)
        self.held[slots] = -1

    def _keep_all(self) -> None:
        """Keep what is there at the end."""
        if self.kept is not None and (self.held >= 0).any():
            assert not isinstance(self.steps, JointSteps)
            texts = [self._computed(row) if row >= 0 else np.zeros(0, np.int64) for row in self.held]
            first = int(self.held[self.held >= 0].min())
            keep_whole(self.kept, self.steps.cache, texts, first, self.room)

    def _computed(self, row: int) -> np.ndarray:
        """The text of a row but for its last token, which was sampled, and not yet computed."""
        replies = self.replies
        return np.concatenate((self.prompts[row], replies.ids[row, : replies.count[row]]))[:-1]

    def _prefill(self, filled: np.ndarray) -> None:
        """Compute each different prompt once, all but its last token, into the cache of every slot that has it.

        The last token of the prompt is fed by the first decoding step, so there is a single path for sampling.
        """
        slots_of_prompt: dict[bytes, list[int]] = {}
        for slot in filled:
            slots_of_prompt.setdefault(self.prompts[self.slots[slot]].tobytes(), []).append(int(slot))
        self.steps.grow(int(self.position[filled].max()) + 1)
        self.steps.admit(filled, self.position[filled])
        groups = list(slots_of_prompt.values())
        texts = [self.prompts[self.slots[group[0]]][:-1] for group in groups]
        starts = self._copy_kept(texts, groups)
        # texts of which nothing is kept take the causal kernel; the rest of others looks back on what is kept
        for begun in (False, True):
            chosen = [i for i, start in enumerate(starts) if (start > 0) == begun]
            # shortest first, and parts are taken from the end: prompts of similar length go together, the longest first
            chosen.sort(key=lambda i: len(texts[i]) - starts[i])
            while chosen:
                width = len(texts[chosen[-1]]) - starts[chosen[-1]]
                n = PREFILL_TOKENS // max(1, width)
                if begun:
                    # what they look back on is gathered for each layer
                    n = min(n, SEEN_TOKENS // max(len(texts[i]) for i in chosen))
                n = max(1, n)
                part, chosen = chosen[-n:], chosen[:-n]
                rests, slots = [texts[i][starts[i] :] for i in part], [groups[i] for i in part]
                # a prompt of one token has nothing to compute here
                if width > 0 and begun:
                    assert not isinstance(self.steps, JointSteps)
                    self.steps.prefill_rest(rests, [starts[i] for i in part], slots)
                elif width > 0:
                    self.steps.prefill(rests, slots)

    def _copy_kept(self, texts: Sequence[np.ndarray], groups: Sequence[Sequence[int]]) -> list[int]:
        """How many tokens of each text are kept of earlier calls; they are copied into its slots."""
        if self.kept is None:
            return [0] * len(texts)
        assert not isinstance(self.steps, JointSteps)
        found = [self.kept.find(text) for text in texts]
        pairs = [(one, slot) for one, group in zip(found, groups, strict=True) if one is not None for slot in group]
        copied_to(self.steps.cache, pairs)
        return [0 if one is None else one.length for one in found]

    # ---- one token for every slot ------------------------------------------------------------------------------------

    def _step(self) -> None:
        self.steps.grow(int(self.position.max()) + 1)
        live = np.flatnonzero(self.slots >= 0)
        rows = self.slots[live]
        logits = self.steps.step(live, self.last, self.position)
        # before sampling, which overwrites the logits
        pauses = self.replies.pauses(rows, logits)
        # the only wait for the device in a step: ids and log-probs are needed to decide which rows ended
        ids, raw, warped = fetched(*sample(logits, self.replies.sampling, self.replies.uniform(rows)))
        self.last[live] = ids
        self.position[live] += 1
        ended = live[self.replies.record(rows, ids, raw, warped, pauses)]
        self.slots[ended], self.last[ended] = -1, 0
        # a free slot may still be fed: at a position after its text, if that is kept, or at 0, for which no cache has to grow
        if self.kept is None:
            self.position[ended] = 0
        self.finished += len(ended)
