"""Batches for tests of credit and losses, made by the engine from rows that are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import torch

from rewardlab.core import Batch, Problem, Score, Term, Trajectory, Turn
from rewardlab.engine.collate import collate

Rewards = Mapping[str, Term]


def outcome(value: float | None, weight: float = 1.0) -> Term:
    return Term(value, (), weight)


def steps(rewards: Mapping[int, float], weight: float = 1.0) -> Term:
    return Term(None, tuple(rewards.items()), weight)


def score_of(terms: Rewards) -> Score:
    """A score of these terms; one with neither value nor steps has no verdict."""
    return Score(terms=terms, missing=any(t.value is None and not t.steps for t in terms.values()))


def row_of(pattern: str) -> Trajectory:
    """A trajectory of `r`ead and `d`ecided positions."""
    turns = []
    for kind, positions in groupby(pattern):
        n = len(list(positions))
        logprobs = np.zeros(n, np.float32) if kind == "d" else None
        turns.append(Turn("policy" if kind == "d" else None, np.zeros(n, np.int64), logprobs, logprobs))
    return Trajectory(Problem(()), tuple(turns), "end")


def batch_of(groups: Sequence[Sequence[tuple[str, Rewards]]], columns: Mapping[str, Sequence] | None = None) -> Batch:
    """Groups of (pattern, rewards by term); columns (B, T) by name, short rows filled up with zeros."""
    rows = [[row_of(pattern) for pattern, _ in group] for group in groups]
    scores = [[score_of(terms) for _, terms in group] for group in groups]
    batch = collate(rows, scores, torch.device("cpu"))
    for name, table in (columns or {}).items():
        batch.columns[name] = torch.tensor([[*row, *[0.0] * (batch.width - len(row))] for row in table])
    return batch


class Replies:
    """A policy that says what it is told to, one reply for each row that asks."""

    context = 1 << 40

    def __init__(self, replies: Sequence[str]):
        self.replies = replies

    def read(self, trajectories, messages):
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        ids = np.zeros(1, np.int64)
        return [t.plus(Turn("policy", ids, text=text), "end") for t, text in zip(trajectories, self.replies, strict=True)]

    def check_fits(self, trajectory, further):
        """Its context has no end."""

    def write(self, trajectories, texts):
        """Recorded replies of one token a character."""
        return [
            t.plus(Turn("policy", np.zeros(len(text), np.int64), text=text), "end")
            for t, text in zip(trajectories, texts, strict=True)
        ]
