"""Held-out problems are sampled with the same random numbers at every step, and by every method with the same seed."""

from __future__ import annotations

import torch

from rewardlab.core import Run


def numbers(run, purpose="eval"):
    return torch.rand(4, generator=run.rng(purpose)).tolist()


def test_training_streams_change_with_the_step_and_held_out_ones_do_not():
    run, later = Run(None, seed=5, step=3), Run(None, seed=5, step=9)
    assert numbers(run) != numbers(later)
    assert numbers(run.for_evaluation()) == numbers(later.for_evaluation())
    assert numbers(run.for_evaluation(), "rollout") != numbers(run.for_evaluation(), "eval")
    assert numbers(run.for_evaluation()) != numbers(Run(None, seed=6, step=3).for_evaluation())
    # apart from those of every training step
    assert all(numbers(Run(None, seed=5, step=s)) != numbers(run.for_evaluation()) for s in range(20))


def test_evaluating_uses_up_nothing_of_the_run():
    run = Run(None, seed=5, step=3)
    first = numbers(run)
    again = Run(None, seed=5, step=3)
    numbers(again.for_evaluation())
    assert numbers(again) == first
