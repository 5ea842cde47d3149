"""Work on rows, in parts for which there is memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewardlab.errors import RewardlabError
from rewardlab.util.device import free_memory
from rewardlab.util.passes import by_tokens
from rewardlab.util.progress import console

SHARE = 0.8
"""Of the free memory, what such work is planned to take: the sums are rough, and memory has gaps."""
LOGIT_BYTES = 16
"""Of each entry of the vocabulary, for each row of a step of sampling, or token of a chunk of the head: four float32 tables."""
LEAST_TOKENS = 512
"""Tokens of a pass without gradient that are never divided."""


def fitting_rows(lengths: Sequence[int], most: int, cost: Callable[[int, int], int], free: int) -> list[list[int]]:
    """Indices 0 .. n-1, in order, in parts of at most `most` rows for which there is memory, of one row in any case.

    lengths: ascending.  cost(rows, length): bytes for so many rows of at most this length.
    """
    parts: list[list[int]] = []
    start = 0
    while start < len(lengths):
        rows = min(most, len(lengths) - start)
        while rows > 1 and cost(rows, lengths[start + rows - 1]) > SHARE * free:
            rows -= 1
        parts.append(list(range(start, start + rows)))
        start += rows
    return parts


def sampling_cost(policy: Any, reply: int) -> Callable[[int, int], int]:
    """The cost of sampling, for `fitting_rows`: replies of so many tokens at most.  policy: with `sampling_bytes`."""
    return lambda rows, prompt: sum(policy.sampling_bytes(rows, prompt, reply).values())


def fitting_tokens(most: int, cost: Callable[[int], int], free: int) -> int:
    """How many tokens a pass without gradient may hold: the most of `most`, half of it and so on for which there is memory."""
    while most > LEAST_TOKENS and cost(most) > SHARE * free:
        most //= 2
    return most


def in_passes(
    lengths: Sequence[int], most: int, cost: Callable[[int], int], device: torch.device, work: Callable[[list[int]], None],
    groups: Sequence[int] = (),
) -> int:  # fmt: skip
    """`work(part)` for rows of these lengths, in passes of at most `most` padded tokens for which there is memory there.

    cost(tokens): bytes of a pass.  groups: as of `by_tokens`.  Returns the most for the next call: less after memory has run out.
    """
    tokens = fitting_tokens(most, cost, free_memory(device))
    return tokens // 2 if in_parts(by_tokens(lengths, tokens, groups), work) else most


def in_parts(
    parts: Sequence[list[int]], work: Callable[[list[int]], None], again: Callable[[list[int]], None] = lambda part: None,
    alone: bool = True,
) -> int | None:  # fmt: skip
    """`work(part)` for each part. One for which memory runs out is halved, as are all after it, which is said in one line.

    again: called before work that was begun begins anew.  alone: False where other processes take part in the work, which would
    wait for what has failed: then its error is passed on.  Returns the rows at a time that were enough; None where all went well.
    """
    left, limit = [*reversed(parts)], None
    while left:
        part = left.pop()
        if limit is not None and len(part) > limit:
            left += [part[limit:], part[:limit]]
            continue
        try:
            work(part)
            continue
        except RuntimeError as e:
            if not (alone and ran_out(e)):
                raise
        # outside of the handler, by which all tensors of the failed work were still held
        limit = halved(len(part))
        again(part)
        left.append(part)
    return limit


def ran_out(problem: BaseException) -> bool:
    """Whether this error says that there is no memory left, on a GPU or in main memory."""
    text = str(problem)
    return isinstance(problem, torch.OutOfMemoryError) or "DefaultCPUAllocator" in text


def halved(rows: int) -> int:
    """Half of the rows at a time for which there was no memory, said in one line. Raises RewardlabError where it was one row."""
    if rows == 1:
        raise RewardlabError("out of memory with a single row: the model, or a text of this length, is too large for this device")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    fewer = rows // 2
    console.print(f"out of memory with {rows} rows at a time: continuing with {fewer}", highlight=False)
    return fewer
