"""Rewards computed from the policy's own probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.util.outputs import entropies, extras


@reward
def likelihood(trajectory: Trajectory) -> Score:
    """Mean log-prob (nats per token, at most 0) of the sampled tokens under the raw policy.

    No verdict if some tokens have no log-probs, as in recorded text.
    """
    logprobs = trajectory.column("logprobs")[trajectory.mask]
    if not len(logprobs):
        return Score(None, why="the policy wrote nothing")
    if np.isnan(logprobs).any():
        return Score(None, why="some of these tokens have no log-probs")
    # float64: the sum of thousands of float32 numbers loses digits
    return Score(float(logprobs.mean(dtype=np.float64)), why="mean log-prob")


@reward(over="groups")
def self_alignment(groups: list[Group], run: Run, *, model: str = "policy") -> Scores:
    """Relative drop of a reply's perplexity given its question: clip((ppl(a) - ppl(a | q)) / ppl(a), -1, 1), ppl(a) without a
    question.

    ppl: exp of the mean over the reply's tokens of -log pi, by a model of the run. Without its question the reply follows an empty
    one, in the same chat template; all that an environment said stays. No verdict on an empty reply.
    Han et al. 2025, arXiv:2509.05489
    """
    rows = [t for group in groups for t in group]
    scorer = run.model(model)
    blank = [t.problem.reworded("") for t in rows]
    read = scorer.read([Trajectory(p) for p in blank], [p.prompt for p in blank]) if rows else []
    alone = [replace(t, turns=(*r.turns, *t.turns[_prompts(t) :]), steps=()) for t, r in zip(rows, read, strict=True)]
    sides = (
        [[_mean_nats(x, t) for x, t in zip(scorer.score(side), side, strict=True)] for side in (rows, alone)] if rows else [[], []]
    )
    scores = iter([_alignment(given, without) for given, without in zip(*sides, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _prompts(trajectory: Trajectory) -> int:
    """How many turns come before the first reply."""
    return next((i for i, turn in enumerate(trajectory.turns) if turn.author is not None), len(trajectory.turns))


def _mean_nats(logprobs: np.ndarray, trajectory: Trajectory) -> float | None:
    decided = logprobs[trajectory.mask]
    return -float(decided.mean(dtype=np.float64)) if len(decided) else None


def _alignment(given: float | None, without: float | None) -> Score:
    if given is None or without is None:
        return Score(None, why="the policy wrote nothing")
    # (e^b - e^a) / e^b = 1 - e^(a - b), which does not overflow where a perplexity would
    relative = 1 - math.exp(min(given - without, 1.0))
    return Score(max(-1.0, relative), why=f"{given:.3f} nats a token with the question, {without:.3f} without")


@reward(over="groups")
def self_certainty(groups: list[Group], run: Run, *, before: str = "") -> Scores:
    """KL(uniform || policy) = -log V - mean over the vocabulary of log pi, in nats, mean over the tokens of the last reply.

    What no token could follow makes it large, however little it weighs in the entropy: see `negentropy`, the other KL.
    before: only over the tokens in front of this text; all, where it does not stand there. No verdict without such a token.
    Kang et al. 2025, arXiv:2502.18581; as a reward: Zhao et al. 2025, "Learning to reason without external rewards" (Intuitor),
    arXiv:2505.19590
    """
    rows = [t for group in groups for t in group]
    table = extras(run.policy, rows, uniform_kl) if rows else []
    scores = iter(
        [
            _mean_of(_last(t, x[t.mask])[: _count(t.reply, before, run.policy.tokenizer)], "KL(uniform || policy)")
            for t, x in zip(rows, table, strict=True)
        ]
    )
    return [[next(scores) for _ in group] for group in groups]


def uniform_kl(logits: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """KL(uniform || softmax(logits (m, V))), (m,)."""
    return {"uniform_kl": logits.logsumexp(1) - logits.mean(1) - math.log(logits.shape[1])}


@reward(over="groups")
def negentropy(groups: list[Group], run: Run, *, before: str = "") -> Scores:
    """KL(policy || uniform) = log(size of the vocabulary) - entropy, in nats, mean over the tokens of the last reply.

    before: only over the tokens in front of this text; all, where it does not stand there. No verdict without such a token.
    The vocabulary is the tokenizer's; for a model with further entries it is off by a constant, which no comparison notices.
    """
    rows = [t for group in groups for t in group]
    tokenizer = run.policy.tokenizer
    most = float(np.log(len(tokenizer)))
    certainty = [(most - h)[t.mask] for t, h in zip(rows, entropies(run.policy, rows), strict=True)] if rows else []
    said = "log V - entropy"
    scores = iter([_mean_of(_last(t, x)[: _count(t.reply, before, tokenizer)], said) for t, x in zip(rows, certainty, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _last(trajectory: Trajectory, numbers: np.ndarray) -> np.ndarray:
    """Those of the numbers, one for each decision, that belong to the last reply."""
    decided = [len(turn.ids) for turn in trajectory.turns if turn.author is not None]
    return numbers[-decided[-1] :] if decided and decided[-1] else numbers[:0]


def _count(text: str, before: str, tokenizer: Any) -> int | None:
    """Tokens in front of `before`; None where it is not there."""
    at = text.find(before) if before else -1
    return None if at < 0 else len(tokenizer(text[:at], add_special_tokens=False)["input_ids"])


def _mean_of(numbers: np.ndarray, why: str) -> Score:
    return Score(float(numbers.mean(dtype=np.float64)), why=why) if len(numbers) else Score(None, why="no such tokens")
