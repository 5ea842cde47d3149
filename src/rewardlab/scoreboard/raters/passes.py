"""Forward passes of language models that rate: rows of like length together, and the vocabulary head only where it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from rewardlab.core import Trajectory
from rewardlab.models.reward_model import CPU_TOKENS, GPU_TOKENS
from rewardlab.util.outputs import forward_batch
from rewardlab.util.passes import by_tokens, numbered


def seeing(*policies: Any) -> bool:
    """Whether all of these policies are shown images."""
    return all(getattr(policy, "sees", False) for policy in policies)


def parts(rows: Sequence[Trajectory], policy: Any) -> list[list[int]]:
    """Indices of rows that are read together, longest first; those of a prompt together where the policy reads it once."""
    budget = CPU_TOKENS if policy.device.type == "cpu" else GPU_TOKENS
    prompts = numbered(_before_decisions(t).tobytes() for t in rows) if policy.shares_prompts else ()
    return by_tokens([len(t) for t in rows], budget, prompts)


def _before_decisions(row: Trajectory) -> np.ndarray:
    mask = row.mask
    return row.ids[: int(mask.argmax())] if mask.any() else row.ids


def logprobs_of(policy: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """For each row the log-probs of its decisions, (n,)."""
    found: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for part, outputs in _passes(policy, rows, "logprobs"):
        table = outputs.cpu().numpy()
        for row, i in zip(table, part, strict=True):
            found[i] = row[: len(rows[i])][rows[i].mask].astype(np.float64)
    return found


def end_values(policy: Any, rows: Sequence[Trajectory]) -> list[float]:
    """The value head's output at the end of each row."""
    found = [0.0] * len(rows)
    for part, values in _passes(policy, rows, "value"):
        for row, i in zip(values.float().cpu().numpy(), part, strict=True):
            found[i] = float(row[len(rows[i]) - 1])
    return found


def next_logits(policy: Any, rows: Sequence[Trajectory], ids: Sequence[int]) -> np.ndarray:
    """(rows, ids): the logits of some tokens in the place after each row."""
    found = np.zeros((len(rows), len(ids)))
    head = policy.vocabulary_head()[list(ids)].detach().float()  # (ids, hidden), with a column for a bias
    for part, hidden in _passes(policy, rows, "hidden"):
        last = torch.tensor([len(rows[i]) - 1 for i in part], device=hidden.device)
        states = hidden[torch.arange(len(part), device=hidden.device), last].float()
        found[part] = (F.pad(states, (0, head.shape[1] - states.shape[1]), value=1.0) @ head.T).cpu().numpy()
    return found


def _passes(policy: Any, rows: Sequence[Trajectory], name: str) -> Iterator[tuple[list[int], torch.Tensor]]:
    policy.token_count.scored += sum(map(len, rows))
    for part in parts(rows, policy):
        with torch.no_grad():
            yield part, getattr(policy.evaluate(forward_batch([rows[i] for i in part], policy.device), (name,)), name)
