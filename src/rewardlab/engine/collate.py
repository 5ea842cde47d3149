"""From trajectories and scores to a Batch, and from a Batch to micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Events, Group, Run, Score, Scores, Term, uncounted
from rewardlab.engine.distributed import all_reduce, in_turns, shard, world_size
from rewardlab.errors import RewardlabError
from rewardlab.util.device import moved


def collate(
    groups: list[Group], scores: Scores | None, device: torch.device, author: str = "policy", temperature: float = 1.0
) -> Batch:
    """Stack rollouts into right-padded tables, (B, T).

    Rewards are placed on decisions of `author`: one at another position moves to the last decision before it.  temperature: of who
    learns (`LearnerState.temperature`); where it is not 1, `old` is of the distribution that was sampled from.
    """
    trajectories = [t for group in groups for t in group]
    if not trajectories:
        raise RewardlabError("the rollout gave no trajectory to learn from")
    flat_scores = [s for row in scores for s in row] if scores is not None else [Score(terms={}, missing=True)] * len(trajectories)
    length = np.array([len(t) for t in trajectories])
    shape = (len(trajectories), int(length.max()))
    first = trajectories[0].ids
    # token ids are (B, T) integers; observations and latents (B, T, D) floats
    ids = np.zeros((*shape, *first.shape[1:]), first.dtype)
    # NaN marks log-probs that nobody recorded (text read from a data set): `add_columns` computes them if needed
    mask, old = np.zeros(shape, bool), np.full(shape, np.nan, np.float32)
    recorded = "logprobs" if temperature == 1.0 else "sampled"
    for i, t in enumerate(trajectories):
        ids[i, : length[i]], mask[i, : length[i]], old[i, : length[i]] = t.ids, t.mask_of(author), t.column(recorded)
    reward, rewarded = _events([s.as_term() for s in flat_scores], mask)
    # an unnamed term ("") is the whole reward: no column of its own is needed to tell it apart
    names = dict.fromkeys(name for s in flat_scores for name in s.terms if name)
    return Batch(
        ids=_tensor(ids, device),
        mask=_tensor(mask, device),
        length=_tensor(length, device),
        old=_tensor(old, device),
        reward=_tensor(reward, device),
        rewarded=_tensor(rewarded, device),
        group=_tensor(np.repeat(np.arange(len(groups)), [len(g) for g in groups]), device),
        terms={name: _term(name, flat_scores, mask, device) for name in names},
        rows=list(zip(trajectories, flat_scores, strict=True)),
    )


def _term(name: str, scores: Sequence[Score], mask: np.ndarray, device: torch.device) -> Events:
    terms = [s.terms.get(name) for s in scores]
    reward, rewarded = _events(terms, mask)
    # a term has the same weight in every score of a batch
    weight = next(t.weight for t in terms if t)
    return Events(_tensor(reward, device), _tensor(rewarded, device), 0.0 if weight is None else weight)


def _events(terms: Sequence[Term | None], mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, T) rewards, and (B, T) whether a reward was given there, which a reward of 0 is too.

    A term's value goes to the last decision; several rewards at one position add up.
    """
    reward, rewarded = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, bool)
    for i, term in enumerate(terms):
        decisions = np.flatnonzero(mask[i])
        if term is None or not len(decisions):
            continue
        outcome = [(int(decisions[-1]), term.value)] if term.value is not None else []
        for position, r in (*outcome, *term.steps):
            # the last decision at or before the position; the first one if the position comes before all decisions
            column = decisions[max(0, int(np.searchsorted(decisions, position, side="right")) - 1)]
            reward[i, column] += r
            rewarded[i, column] = True
    return reward, rewarded


def _tensor(x: np.ndarray, device: torch.device) -> Tensor:
    return moved(x, device)


SHORT = {"ref": "reference.logprobs", "value": "critic.value"}
OUTPUTS = ("logprobs", "entropy", "value", "hidden", "values")


def add_columns(batch: Batch, needs: Sequence[str], run: Run, micro_tokens: int, per_token: Sequence[Any] = ()) -> Batch:
    """Compute, without gradient, the columns that parts declare in `needs`, with the models as they are before the update.

    "MODEL.OUTPUT" is an output of a model of the run: "reference.entropy", "critic.value", "policy.NAME" with a NAME that one of
    `per_token` computes inside the chunked head. ref, value: short for reference.logprobs and critic.value. old: the log-probs
    under the weights that wrote the tokens, computed where they were not recorded.

    Reading a column that no part declares raises an error that names it. `old` alone is always there: of recorded text it stays
    NaN unless a part declares it. An undeclared read then yields NaN, and the update stops with an error instead of using a wrong
    loss.
    """
    # only decisions need log-probs; a 0 elsewhere keeps NaN out of sums over the table
    batch.old = torch.where(batch.mask, batch.old, 0.0)
    unrecorded = bool(batch.old.isnan().any())
    for need in needs:
        model, _, output = SHORT.get(need, need).rpartition(".")
        if need == "old":
            # a forward pass over the whole batch, so only if some log-prob is really missing
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
    # an output that models do not have by themselves is one of those computed inside the head
    wants, extra = ((output,), ()) if output in OUTPUTS else ((), per_token)
    tables = outputs_of(model, batch, micro_batches(batch, micro_tokens, "row"), wants, extra)
    table = tables.get(output, tables.get(f"extra.{output}"))
    if table is None:
        raise RewardlabError(f"the model {model.name!r} has no output {output!r}; an objective may compute it by per_token")
    return table


@torch.no_grad()
def outputs_of(
    model: Any, batch: Batch, parts: Sequence[Tensor], wants: Sequence[str], per_token: Sequence[Any]
) -> dict[str, Tensor]:
    """A model's outputs on the whole batch, (B, T, ...) by name, from a forward pass without gradient over its `parts`."""
    own_parts = shard(list(parts))
    tables: dict[str, Tensor] = {}
    # a rank without a part still evaluates one, to learn the names and shapes of the tables it must all_reduce; it adds zeros
    with nullcontext() if own_parts else uncounted(model), in_turns():
        for rows in own_parts or parts[:1]:
            at = moved(rows, batch.ids.device)
            for name, part in model.evaluate(batch[rows], wants, per_token).tensors().items():
                if name not in tables:
                    tables[name] = part.new_zeros((*batch.mask.shape, *part.shape[2:]))
                tables[name][at, : part.shape[1]] = part if own_parts else 0.0
    # each row is filled in by one rank and 0 on all others, so the sum over ranks is the complete table
    return {name: all_reduce(table) for name, table in tables.items()}


def micro_batches(batch: Batch, tokens: int, unit: str) -> list[Tensor]:
    """Row indices in parts of at most `tokens` real tokens; rows of similar length go together.

    unit: "group" keeps the rows of a group in one part, even if they exceed `tokens`; any other value splits by row.

    With several ranks, parts are small enough that each rank gets one, units permitting.
    """
    tokens = min(tokens, -(-int(batch.length.sum()) // world_size()))
    blocks = [[i] for i in range(len(batch))]
    if unit == "group":
        group_of = batch.group.tolist()
        blocks = [[] for _ in range(batch.groups)]
        for i, g in enumerate(group_of):
            blocks[g].append(i)
    length = batch.length.tolist()
    size = [sum(length[i] for i in block) for block in blocks]
    # longest first, so that a part's rows are padded little
    order = sorted(range(len(blocks)), key=lambda b: -max(length[i] for i in blocks[b]))
    parts: list[list[int]] = []
    room = 0
    for b in order:
        # a block larger than the limit gets a part of its own rather than an error: it may still fit in memory
        if size[b] > room or not parts:
            parts.append([])
            room = tokens
        parts[-1] += blocks[b]
        room -= size[b]
    # in the order of the batch, so that the rows of a group stay next to each other
    return [torch.tensor(sorted(part)) for part in parts]


def mini_batches(batch: Batch, n: int, rng: torch.Generator) -> list[Tensor]:
    """Row indices of n parts. Groups are assigned to parts at random and never split."""
    if n <= 1:
        return [torch.arange(len(batch))]
    order = torch.randperm(batch.groups, generator=rng)
    # `rng` lives on the CPU, and isin wants both tensors on one device
    group = batch.group.cpu()
    return [torch.isin(group, part).nonzero().squeeze(1) for part in order.tensor_split(min(n, batch.groups))]
