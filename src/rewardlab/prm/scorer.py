"""The common base of step scorers: solutions to tokens, batches, and one number per step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from rewardlab.core import TokenCount
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.model import context_of, reading_bytes
from rewardlab.policies.room import in_passes
from rewardlab.util.passes import SCORE_TOKENS

Solution = tuple[str, Sequence[str]]
"""A prompt, and the steps of a solution."""


class NoScorer(RewardlabError):
    """A checkpoint is not of the convention that it is loaded in; the message says what it lacks."""


@dataclass(frozen=True)
class Encoded:
    """A solution as a model reads it.

    ids: its tokens.  at: the position in them from which each step's score is read.  start: that of the first step's first token,
    where scores are sums over tokens.
    """

    ids: list[int]
    at: list[int]
    start: int = 0


class StepScorer:
    """A model that gives each step of a solution a chance of being right.

    Subclasses say how a solution is written (`encode`), and how a step's score is read (`_chances`). model: of transformers.
    """

    convention: ClassVar[str]
    splitter = ""
    """What its steps were when it learnt (`text/splitters.py`), where its checkpoint says so."""
    most_tokens = SCORE_TOKENS
    """Padded tokens in a pass: fewer after memory has run out."""

    def __init__(self, model: Any, tokenizer: Any, device: torch.device):
        self.model, self.tokenizer, self.device = model.to(device).eval(), tokenizer, device
        self.token_count, self.context, self.name = TokenCount(), context_of(model, tokenizer), self.convention
        self._known: dict[tuple[str, tuple[str, ...]], list[float]] | None = None

    def score(self, solutions: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]]:
        """For each (prompt, steps) the chance, in [0, 1], that each step is right, given the prompt and the steps before it.

        Longest rows first, as many at once as fit. Raises RewardlabError for a solution without steps, with a blank one, or with
        more tokens than the model's context: nothing is ever cut off.
        """
        if self._known is None:
            return self._read(solutions)
        keys = [(prompt, tuple(steps)) for prompt, steps in solutions]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        self._known |= dict(zip(new, self._read(new), strict=True))
        return [list(self._known[key]) for key in keys]

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """A context in which no solution is read twice, such as a search, whose replies are scored on the way and in the end."""
        self._known = {}
        try:
            yield
        finally:
            self._known = None

    def _read(self, solutions: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]]:
        encoded = [self._checked(prompt, steps) for prompt, steps in solutions]
        lengths = [self.length(e) for e in encoded]
        found: list[list[float]] = [[] for _ in encoded]

        def work(part: list[int]) -> None:
            with torch.no_grad():
                rows = self._chances([encoded[i] for i in part])
            for i, chances in zip(part, rows, strict=True):
                found[i] = chances

        cost = partial(reading_bytes, self.model.config, self.model.dtype)
        self.most_tokens = in_passes(lengths, self.most_tokens, cost, self.device, work)
        self.token_count.scored += sum(lengths)
        return found

    def fits(self, prompt: str, steps: Sequence[str]) -> bool:
        """Whether the solution, as this convention writes it, is within the model's context."""
        return len(self.encode(prompt, steps).ids) <= self.context

    def encode(self, prompt: str, steps: Sequence[str]) -> Encoded:
        """The tokens of a solution, and where each step's score is read."""
        raise NotImplementedError

    def length(self, encoded: Encoded) -> int:
        """The tokens that the model, or all models together, read of a solution."""
        return len(encoded.ids)

    def _chances(self, rows: Sequence[Encoded]) -> list[list[float]]:
        raise NotImplementedError

    def _checked(self, prompt: str, steps: Sequence[str]) -> Encoded:
        if not steps or not all(step.strip() for step in steps):
            raise RewardlabError(f"a solution without steps, or with a blank one, cannot be scored: {prompt[:60]!r}")
        encoded = self.encode(prompt, steps)
        if len(encoded.ids) > self.context:
            raise RewardlabError(
                f"a solution of {len(encoded.ids)} tokens is longer than the scorer's context of {self.context}: {prompt[:60]!r}; "
                "leave it out, or use a scorer with a longer context"
            )
        if len(encoded.at) != len(steps):
            raise RewardlabError(
                f"{len(encoded.at)} places to score and {len(steps)} steps, as {self.convention!r} writes {prompt[:60]!r}: a text "
                "of it holds the mark that ends a step"
            )
        return encoded

    # ---- as a model of a run -----------------------------------------------------------------------------------------

    def parameters(self) -> list[torch.nn.Parameter]:
        """None that train: in a run a scorer stays what it was when it was loaded."""
        return []

    def state(self) -> dict[str, Tensor]:
        """None that a checkpoint must hold."""
        return {}

    # ---- for subclasses ----------------------------------------------------------------------------------------------

    def _padded(self, rows: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
        """Ids (B, T), padded on the right with 0, and which of them are real."""
        width = max(len(row.ids) for row in rows)
        ids, real = torch.zeros(2, len(rows), width, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)], real[i, : len(row.ids)] = torch.tensor(row.ids), 1
        return ids.to(self.device), real.to(self.device)

    def _hidden_at(self, rows: Sequence[Encoded]) -> Tensor:
        """(n, hidden): the last hidden states at all places to score, row by row."""
        ids, real = self._padded(rows)
        hidden = self.model.base_model(input_ids=ids, attention_mask=real, use_cache=False).last_hidden_state
        return torch.cat([hidden[i, row.at] for i, row in enumerate(rows)])

    def _plain(self, text: str) -> list[int]:
        """The tokens of a text alone, without special ones."""
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def by_row(flat: Iterable[float], rows: Sequence[Encoded]) -> list[list[float]]:
    """Numbers of all steps, row by row, as a list for each row."""
    numbers = iter(flat)
    return [[next(numbers) for _ in row.at] for row in rows]
