"""From trajectories and scores to a Batch, and from a Batch to micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Events, Group, Run, Score, Scores, Term
from rewardlab.errors import RewardlabError

from .distributed import mine, total, world


def collate(groups: list[Group], scores: Scores | None, device: torch.device, author: str = "policy") -> Batch:
    """Stack rollouts, right-padded. Rewards land on decisions of `author`: an event elsewhere moves to the one before it."""
    rows = [t for group in groups for t in group]
    if not rows:
        raise RewardlabError("the rollout gave no trajectory to learn from")
    flat = [s for row in scores for s in row] if scores is not None else [Score(terms={}, missing=True)] * len(rows)
    length = np.array([len(t) for t in rows])
    shape = (len(rows), int(length.max()))
    first = rows[0].ids
    ids = np.zeros((*shape, *first.shape[1:]), first.dtype)
    mask, old = np.zeros(shape, bool), np.full(shape, np.nan, np.float32)
    for i, t in enumerate(rows):
        ids[i, : length[i]], mask[i, : length[i]], old[i, : length[i]] = t.ids, t.mask_of(author), t.column("logprobs")
    reward, rewarded = _events([s.as_term() for s in flat], mask)
    # a score that no reward has named has no terms to tell apart
    names = dict.fromkeys(name for s in flat for name in s.terms if name)
    return Batch(
        ids=_on(ids, device),
        mask=_on(mask, device),
        length=_on(length, device),
        old=_on(old, device),
        reward=_on(reward, device),
        rewarded=_on(rewarded, device),
        group=torch.repeat_interleave(torch.arange(len(groups)), torch.tensor([len(g) for g in groups])).to(device),
        terms={name: _term(name, flat, mask, device) for name in names},
        rows=list(zip(rows, flat, strict=True)),
    )


def _term(name: str, scores: Sequence[Score], mask: np.ndarray, device: torch.device) -> Events:
    terms = [s.terms.get(name) for s in scores]
    reward, rewarded = _events(terms, mask)
    weight = next(t.weight for t in terms if t)
    return Events(_on(reward, device), _on(rewarded, device), 0.0 if weight is None else weight)


def _events(terms: Sequence[Term | None], mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rewards at their positions. A value falls on the last decision; rewards that meet on one position add up."""
    reward, rewarded = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, bool)
    for i, term in enumerate(terms):
        decided = np.flatnonzero(mask[i])
        if term is None or not len(decided):
            continue
        outcome = [(int(decided[-1]), term.value)] if term.value is not None else []
        for position, r in (*outcome, *term.steps):
            at = decided[max(0, int(np.searchsorted(decided, position, side="right")) - 1)]
            reward[i, at] += r
            rewarded[i, at] = True
    return reward, rewarded


def _on(x: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(x).to(device)


SHORT = {"ref": "reference.logprobs", "value": "critic.value"}
OUTPUTS = ("logprobs", "entropy", "value", "hidden")


def add_columns(batch: Batch, needs: Sequence[str], run: Run, micro_tokens: int, per_token: Sequence[Any] = ()) -> Batch:
    """Compute, without gradient, the columns that parts asked for, as the models are before the update.

    "MODEL.OUTPUT" is what a model of the run says: "reference.entropy", "critic.value", "policy.NAME" with a NAME that one of
    `per_token` computes inside the chunked head. ref, value: short for reference.logprobs and critic.value. old: the log-probs
    under the weights that wrote the tokens, computed where they were not recorded.

    Of recorded text `old` stays NaN unless it is asked for: a part that reads it without saying so is found out.
    """
    batch.old = torch.where(batch.mask, batch.old, 0.0)
    unrecorded = bool(batch.old.isnan().any())
    for need in needs:
        model, _, output = SHORT.get(need, need).rpartition(".")
        if need == "old":
            if unrecorded:
                old = _forward(run.policy, batch, "logprobs", micro_tokens, ())
                batch.old = torch.where(batch.old.isnan(), old, batch.old)
        elif model:
            batch.columns[need] = _forward(run.model(model), batch, output, micro_tokens, per_token)
        elif need not in batch.columns:
            raise RewardlabError(f"no column {need!r}: the engine computes old, ref, value and MODEL.OUTPUT")
    return batch


def _forward(model: Any, batch: Batch, output: str, micro_tokens: int, per_token: Sequence[Any]) -> Tensor:
    """(B, T) or (B, T, d): one output of a model."""
    wants, extra = ((output,), ()) if output in OUTPUTS else ((), per_token)
    tables = outputs_of(model, batch, micro_batches(batch, micro_tokens, "row"), wants, extra)
    found = tables.get(output, tables.get(f"extra.{output}"))
    if found is None:
        raise RewardlabError(f"the model {model.name!r} says no {output!r}; an objective may compute it by per_token")
    return found


@torch.no_grad()
def outputs_of(
    model: Any, batch: Batch, parts: Sequence[Tensor], wants: Sequence[str], per_token: Sequence[Any]
) -> dict[str, Tensor]:
    """What a model says of the whole batch, (B, T, ...) by name, from a pass without gradient over its parts."""
    share = mine(list(parts))
    tables: dict[str, Tensor] = {}
    for rows in share or parts[:1]:
        for name, part in model.evaluate(batch[rows], wants, per_token).tensors().items():
            if name not in tables:
                tables[name] = part.new_zeros((*batch.mask.shape, *part.shape[2:]))
            # a process without a share only learns what tables there are
            tables[name][rows, : part.shape[1]] = part if share else 0.0
    return {name: total(table) for name, table in tables.items()}


def micro_batches(batch: Batch, tokens: int, unit: str) -> list[Tensor]:
    """Row indices in parts of at most `tokens` real tokens; rows of like length go together; a unit is never split.

    Where several processes train together, parts are small enough that each gets one.
    """
    tokens = min(tokens, -(-int(batch.length.sum()) // world()))
    blocks = [[i] for i in range(len(batch))]
    if unit == "group":
        owner = batch.group.tolist()
        blocks = [[] for _ in range(batch.groups)]
        for i, g in enumerate(owner):
            blocks[g].append(i)
    length = batch.length.tolist()
    size = [sum(length[i] for i in block) for block in blocks]
    order = sorted(range(len(blocks)), key=lambda b: -max(length[i] for i in blocks[b]))
    parts: list[list[int]] = []
    room = 0
    for b in order:
        if size[b] > room or not parts:
            parts.append([])
            room = tokens
        parts[-1] += blocks[b]
        room -= size[b]
    return [torch.tensor(sorted(part)) for part in parts]


def mini_batches(batch: Batch, n: int, rng: torch.Generator) -> list[Tensor]:
    """Whole groups dealt at random into n parts."""
    if n <= 1:
        return [torch.arange(len(batch))]
    order = torch.randperm(batch.groups, generator=rng)
    group = batch.group.cpu()
    return [torch.isin(group, part).nonzero().squeeze(1) for part in order.tensor_split(min(n, batch.groups))]
