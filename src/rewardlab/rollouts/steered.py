"""Replies sampled while a direction is added to what a layer passes on, and how that direction is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Group, Problem, Rollout, Run, Scores, Trajectory, ask, forward_batch, rollout
from rewardlab.data.step_formats import read_solutions
from rewardlab.errors import RewardlabError

Pair = tuple[Trajectory, Trajectory]
BATCH = 32
"""Rows whose activations are computed at a time."""


@rollout(inner="of")
def activation_steering(
    problems: list[Problem], run: Run, *, of: Rollout, solutions: str, strength: float = 1.0, layer: int = -1
) -> list[Group]:
    """What `of` samples where `strength` times a direction is added to what a decoder layer passes on for every token.

    The direction is `contrast` of the shortest and the longest right solution to each prompt of the file `solutions`, which the
    policy itself should have written: rows of prompt, steps and right (data/solutions.py), steps joined by newlines. It is found
    once, with the weights of that moment, and kept in run.memory.  layer: counted from 0; -1: the middle one.
    """
    key = f"steered {solutions} {layer}"
    if key not in run.memory:
        run.memory[key] = contrast(run.policy, _recorded(solutions, run), layer)
    with added(run.policy, strength * run.memory[key], layer):
        return of(problems, run)


def added(policy: Any, direction: Tensor, layer: int) -> Any:
    """A context in which `direction` (hidden,) is added to what the layer passes on for every token."""
    return policy.inserted(_place(policy, layer), lambda x: x + direction.to(x))


def shortest_and_longest(groups: Sequence[Group], verdicts: Scores) -> list[Pair]:
    """Of each group its shortest and its longest right row, in sampled tokens; of equal ones the first. Groups in which all right
    rows are as long as each other say nothing about length, and have no pair.
    """
    right = [
        [t for t, s in zip(group, row, strict=True) if s.value is not None and s.value >= 1.0 and t.mask.any()]
        for group, row in zip(groups, verdicts, strict=True)
    ]
    return [pair for rows in right if rows and (pair := _extremes(rows))]


def _extremes(rows: Sequence[Trajectory]) -> Pair | None:
    lengths = [int(t.mask.sum()) for t in rows]
    least, most = min(lengths), max(lengths)
    return (rows[lengths.index(least)], rows[lengths.index(most)]) if least < most else None


def contrast(policy: Any, pairs: Sequence[Pair], layer: int = -1) -> Tensor:
    """(hidden,) what the layer passes on at the sampled tokens of the first rows of the pairs, minus that of the second ones.

    Each row counts as the mean over its tokens, so that a long one weighs as much as a short one.
    """
    if not pairs:
        raise RewardlabError("no problem has two right solutions of different lengths, so there is no direction to steer in")
    rows, at = [t for pair in pairs for t in pair], _place(policy, layer)
    means = torch.cat([_means(policy, rows[i : i + BATCH], at) for i in range(0, len(rows), BATCH)])
    return means[0::2].mean(0) - means[1::2].mean(0)


def _means(policy: Any, rows: Sequence[Trajectory], layer: int) -> Tensor:
    """(B, hidden) the mean over each row's sampled tokens."""
    batch = forward_batch(rows, policy.device)
    table, mask = policy.activation_table(batch, layer), batch.mask[:, :, None]
    return (table * mask).sum(1) / mask.sum(1)


def _place(policy: Any, layer: int) -> int:
    return policy.depth // 2 if layer == -1 else layer


def _recorded(solutions: str, run: Run) -> list[Pair]:
    """The pairs of a file of solutions, as the policy would have written them."""
    by_prompt: dict[str, list[str]] = {}
    for solution in read_solutions(solutions):
        if solution.right:
            by_prompt.setdefault(solution.prompt, []).append("\n".join(solution.steps))
    pairs = []
    for prompt, texts in by_prompt.items():
        asked = run.policy.read([Trajectory(ask(prompt))] * len(texts), [ask(prompt).prompt] * len(texts))
        pairs.append(_extremes([_as_sampled(a, b, run) for a, b in zip(asked, run.policy.write(asked, texts), strict=True)]))
    return [pair for pair in pairs if pair]


def _as_sampled(before: Trajectory, row: Trajectory, run: Run) -> Trajectory:
    """The row with the policy as the author of what was written after the prompt."""
    n = len(before.turns)
    return replace(row, turns=(*row.turns[:n], *(replace(turn, author=run.policy.name) for turn in row.turns[n:])))
