"""The forward passes of generation in C++ (`native/`): for small models, and for few rows of large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from rewardlab.policies.llama.linear import packed_formats
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.decoding import Decoding
from rewardlab.policies.llama.native.library import library
from rewardlab.policies.llama.steps import Steps


class NativeSteps(Steps):
    """What `Steps` computes, in C++, for small models in float32 on CPUs."""

    gaps = False

    @staticmethod
    def prepared(folded: SimpleNamespace) -> SimpleNamespace:
        return folded

    def compile(self) -> None:
        found = library()
        assert found is not None
        self.native = Decoding(found, self.model.shape, self.weights)

    def admit(self, slots: np.ndarray, lengths: np.ndarray) -> None:
        """Nothing: a token attends up to its own position, and what lies there is of its own row."""

    def prefill(self, prompts: Sequence[np.ndarray], slots: Sequence[Sequence[int]]) -> None:
        self.prefill_rest(prompts, [0] * len(prompts), slots)

    def prefill_rest(self, rests: Sequence[np.ndarray], starts: Sequence[int], slots: Sequence[Sequence[int]]) -> None:
        lengths, first = [len(rest) for rest in rests], [group[0] for group in slots]
        places = np.concatenate([start + np.arange(n) for start, n in zip(starts, lengths, strict=True)])
        tokens, rows, positions = map(torch.from_numpy, (np.concatenate(rests), np.repeat(first, lengths), places))
        self.native.forward(self.cache, tokens, rows, positions, predict=False)
        self.copy([(group[0], slot) for group in slots for slot in group[1:]], int(places.max()) + 1)

    def step(self, live: np.ndarray, ids: np.ndarray, positions: np.ndarray) -> Tensor:
        tokens, rows, places = map(torch.from_numpy, (ids[live], live, positions[live]))
        logits = self.native.forward(self.cache, tokens, rows, places)
        assert logits is not None
        return logits


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """A context in which PyTorch's operations use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class FewRows(NativeSteps):
    """In C++ for few rows of a large model on CPUs: what a step takes is reading its weights, which all threads do at once.

    Weights are float32 or bfloat16, and all else float32, the cache too.
    """

    def __init__(self, model: Llama, weights: SimpleNamespace, slots: int):
        super().__init__(model, weights, slots)
        self.cache = [table.float() for table in self.cache]

    def compile(self) -> None:
        found = library()
        assert found is not None
        self.threads = torch.get_num_threads()
        self.native = Decoding(found, self.model.shape, self.read(), self.threads)

    def read(self) -> SimpleNamespace:
        """The weights that steps read. The tables of positions are those of the model itself, which are exact."""
        return SimpleNamespace(**{**vars(self.weights), "cos": self.model.cos, "sin": self.model.sin})

    def prefill(self, prompts: Sequence[np.ndarray], slots: Sequence[Sequence[int]]) -> None:
        # many tokens are multiplied by PyTorch, unless it only imitates the format
        if self.weights.head.dtype in packed_formats():
            with torch_threads(self.threads):
                Steps.prefill(self, prompts, slots)
        else:
            super().prefill(prompts, slots)

    def prefill_rest(self, rests: Sequence[np.ndarray], starts: Sequence[int], slots: Sequence[Sequence[int]]) -> None:
        if self.weights.head.dtype in packed_formats():
            with torch_threads(self.threads):
                Steps.prefill_rest(self, rests, starts, slots)
        else:
            super().prefill_rest(rests, starts, slots)


class Int8Steps(FewRows):
    """The same with the weights of steps in 8 bits (`int8.py`); prompts are computed with those that were rounded."""

    def read(self) -> SimpleNamespace:
        return SimpleNamespace(**vars(super().read()) | vars(self.weights.int8) | {"embed": self.weights.embed.bfloat16()})
