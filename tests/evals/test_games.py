"""Games between replies, against what is known of them."""

from __future__ import annotations

import pytest
import torch

from rewardlab.core import Run
from rewardlab.methods.objectives.onpo import duality_gap, random_games, self_play, self_play_gaps

CYCLE = torch.tensor([[[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]]], dtype=torch.float64)
"""Each reply beats the next one, and the last beats the first."""


def test_the_gap_of_a_cycle_by_hand():
    third = torch.full((1, 3), 1 / 3, dtype=torch.float64)
    assert duality_gap(third, CYCLE).item() == pytest.approx(0)
    # against (1/2, 1/2, 0):  .25, .5 and .5 + 0 ...: the third beats the first and loses to the second, 1/2;
    # the first draws with itself and beats the second, 3/4: the best wins 3/4, the worst loses 3/4
    assert duality_gap(torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64), CYCLE).item() == pytest.approx(0.5)
    assert duality_gap(torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64), CYCLE).item() == pytest.approx(1)


def test_one_round_by_hand():
    start = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64)
    # wins against the start: 1/4 + 1/4, 1/8 + 1/4, 1/2 + 1/8
    step = torch.tensor([[0.5, 0.375, 0.625]], dtype=torch.float64)
    for optimistic, times in ((False, 2), (True, 4)):
        _, last = self_play(CYCLE, start, 2, 2.0, optimistic)
        now = (start.log() + times * step).softmax(-1)
        assert last[1].item() == pytest.approx(duality_gap(now, CYCLE).item())
        mean, _ = self_play(CYCLE, start, 2, 2.0, optimistic)
        assert mean[1].item() == pytest.approx(duality_gap((start + now) / 2, CYCLE).item())


def test_the_last_policy_of_plain_self_play_leaves_the_cycle_and_that_of_optimistic_comes_to_it():
    start = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    ends = [float(self_play(CYCLE, start, 400, 0.5, optimistic)[1][-1]) for optimistic in (False, True)]
    assert ends[0] > 0.8
    assert ends[1] < 0.01


def test_preferences_of_random_games_add_up_and_seeds_give_others():
    preferred, start = random_games(torch.Generator().manual_seed(1), 7, 4)
    assert torch.allclose(preferred + preferred.mT, torch.ones(()).double())
    assert torch.allclose(start.sum(-1), torch.ones(()).double())
    small = self_play_gaps(games=4, rounds=16, rates=(1.0,))
    first, again, other = (small([], Run(None, seed=seed).for_evaluation()) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) == {"n"} | {f"{x}.{y}" for x in ("log_gap", "slope", "last") for y in ("omd", "optimistic")}


def test_a_rate_that_is_best_is_taken_for_each():
    both, slow = (self_play_gaps(games=8, rounds=32, rates=rates)([], Run(None)) for rates in ((0.1, 2.0), (0.1,)))
    assert both["log_gap.omd"] < slow["log_gap.omd"]
    assert both["log_gap.optimistic"] < slow["log_gap.optimistic"]
