"""Rejection sampling: which replies are imitated, and that nothing else is learned."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Recipe, Run, Score, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.update import backward
from rewardlab.methods.baselines.rejection_sampling import best_right
from rewardlab.models.embedded import untrained


def kept(groups, **settings) -> list[list[float]]:
    """The weights of each row's tokens."""
    batch = batch_of([[(pattern, {"a": outcome(r)}) for pattern, r in group] for group in groups])
    weight = best_right(**settings)(batch)
    assert weight[~batch.mask].abs().max() == 0
    return [row[where].tolist() for row, where in zip(weight, batch.mask, strict=True)]


def test_the_first_of_the_right_ones_and_none_of_the_wrong():
    # two of three right ones; the only right one; nothing of a problem that was not solved: 2 + 1 + 1 tokens
    groups = [[("rd", 0.0), ("rdd", 1.0), ("rd", 1.0), ("rd", 1.0)], [("rd", 1.0), ("rd", 0.0)], [("rd", 0.0), ("rd", 0.5)]]
    quarter = 0.25
    expected = [[0], [quarter] * 2, [quarter], [0], [quarter], [0], [0], [0]]
    assert kept(groups, keep=2) == expected


def test_of_graded_rewards_the_best():
    assert kept([[("rd", 0.6), ("rd", 0.9), ("rd", 0.7)]], keep=1) == [[0], [1], [0]]
    assert kept([[("rd", 0.6), ("rd", 0.9), ("rd", 0.7)]], keep=2) == [[0], [0.5], [0.5]]
    assert kept([[("rd", 0.6), ("rd", 0.9), ("rd", 0.7)]], keep=3, right=0.65) == [[0], [0.5], [0.5]]


def test_a_reply_without_a_verdict_is_not_kept():
    assert kept([[("rd", None), ("rd", 1.0)]], right=-1.0) == [[0], [1]]


def test_where_nothing_is_right_nothing_is_learned():
    assert kept([[("rd", 0.0), ("rdd", 0.0)]]) == [[0], [0, 0]]


@pytest.fixture(scope="module")
def groups():
    policy = untrained()
    asked = policy.read([Trajectory(ask("2+3?", "5"))] * 4, [ask("2+3?").prompt] * 4)
    return policy, policy.write(asked, ["5", "2+3=6\n6", "Answer: 5", "a long and wrong reply"])


def gradient(policy, rows, scores, recipe: Recipe) -> torch.Tensor:
    policy.model.zero_grad()
    backward(policy, collate([rows], scores, policy.device), recipe, Run(policy), 64)
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


def test_the_gradient_is_that_of_sft_on_what_is_kept(groups):
    policy, rows = groups
    scores = [[Score(1.0), Score(0.0), Score(1.0), Score(0.0)]]
    ours = gradient(policy, rows, scores, registry.build("rejection_sampling"))
    expected = gradient(policy, [rows[0], rows[2]], None, registry.build("sft"))
    assert float(expected.abs().max()) > 1e-3
    assert torch.allclose(ours, expected, atol=1e-6)
