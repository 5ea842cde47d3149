"""Outputs of a policy for rows: values, entropies, embeddings, in forward passes of bounded memory; replies that it did not end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Trajectory
from rewardlab.util.passes import SCORE_TOKENS, by_tokens, numbered

ROWS_AT_ONCE = 256
"""Rows of one forward pass of what is no language model."""


def values(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the value of the text up to and including each position."""
    return _output(model, rows, "value")


def entropies(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the entropy in nats of the distribution from which each decision was taken; 0 where text was only read.

    Of the whole distribution, before temperature, top-k and top-p.
    """
    return _output(model, rows, "entropy")


def extras(model: Any, rows: Sequence[Trajectory], function: Callable[[Tensor, Tensor], dict[str, Tensor]]) -> list[np.ndarray]:
    """(len,) for each row: what a function computes of each decision's logits (m, V) and ids (m,), a dict of one column (m,).

    As objectives' `per_token` functions, it runs in the chunked head: the table of all logits is never in memory.
    """
    return _output(model, rows, "", (function,))


def embeddings(model: Any, rows: Sequence[Trajectory]) -> np.ndarray:
    """(n, D) a vector of length 1 for each row: the mean of the model's hidden states at its decisions."""
    means = [h[t.mask].mean(0) for t, h in zip(rows, _output(model, rows, "hidden"), strict=True)]
    return np.stack([m / max(float(np.linalg.norm(m)), 1e-12) for m in means])


@torch.no_grad()
def hidden_at(model: Any, rows: Sequence[Trajectory], places: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """(n, D) for each row: the last hidden states at these n positions of it."""
    found: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for part in _parts(model, rows):
        hidden = model.evaluate(forward_batch([rows[i] for i in part], model.device), ("hidden",)).hidden
        for states, i in zip(hidden, part, strict=True):
            found[i] = states[list(places[i])].float().cpu().numpy()
    return found


@torch.no_grad()
def _output(model: Any, rows: Sequence[Trajectory], name: str, per_token: Sequence[Any] = ()) -> list[np.ndarray]:
    per_row: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for part in _parts(model, rows):
        batch = forward_batch([rows[i] for i in part], model.device)
        out = model.evaluate(batch, (), per_token) if per_token else model.evaluate(batch, (name,))
        table = (getattr(out, name) if name else next(iter(out.extra.values()))).cpu().numpy()  # (B, T)
        for row, i in zip(table, part, strict=True):
            per_row[i] = row[: len(rows[i])]
    return per_row


def _parts(model: Any, rows: Sequence[Trajectory]) -> list[list[int]]:
    """The rows of each pass: of a language model, rows of like lengths, for whose tokens there is memory; those that begin with the
    same prompt are neighbours, so that it is read once."""
    if not hasattr(model, "tokens_at_once"):
        return [list(range(i, min(i + ROWS_AT_ONCE, len(rows)))) for i in range(0, len(rows), ROWS_AT_ONCE)]
    prompts = numbered(t.turns[0].ids.tobytes() for t in rows)
    return by_tokens([len(t) for t in rows], model.tokens_at_once(SCORE_TOKENS), prompts)


def last_values(model: Any, rows: Sequence[Trajectory]) -> list[float]:
    """The value at the end of each row."""
    return [float(v[-1]) for v in values(model, rows)]


def forward_batch(rows: Sequence[Trajectory], device: torch.device) -> Batch:
    """A batch for a forward pass alone: no rewards, no old log-probs, every row its own group."""
    length = torch.tensor([len(t) for t in rows])
    shape = (len(rows), int(length.max()))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
    for i, t in enumerate(rows):
        ids[i, : len(t)], mask[i, : len(t)] = t.ids, t.mask
    # one tensor for all unused columns: nobody writes to them
    blank = torch.zeros(shape, device=device)
    on_device, decided = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
    group = torch.arange(len(rows), device=device)
    # the rows too: what stands beside their ids (images, vectors) is read from them
    return Batch(on_device, decided, length.to(device), blank, blank, blank.bool(), group, rows=[(t, None) for t in rows])


def last_tokens(tokenizer: Any, words: Sequence[str]) -> list[int]:
    """The last token of each of these words, of which a model says one."""
    return [tokenizer(word, add_special_tokens=False)["input_ids"][-1] for word in words]


def cut_off_replies(episodes: Iterable[Trajectory], policy: Any, most: int) -> int | None:
    """How many replies of episodes were cut off at `most` tokens: so long, and not closed by a token that ends a reply.

    Where an environment answers, `stop` says why the episode ended, not why its replies did. None for a policy that does not say
    which tokens those are: a served one, or one of motor commands.
    """
    ends = getattr(policy, "ends", None)
    if ends is None:
        return None
    found = 0
    for episode in episodes:
        for author, turns in groupby(episode.turns, key=lambda turn: turn.author):
            # one reply may have been sampled over several updates
            ids = [i for turn in turns if author is not None and turn.vectors is None for i in turn.ids.tolist()]
            found += len(ids) >= most and ids[-1] not in ends
    return found
