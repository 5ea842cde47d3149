"""B-STaR: what is selected is imitated, each token alike, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.methods.sampling.b_star import claim
from rewardlab.rewards.reward import reward


@reward
def verdict(trajectory):
    return float(trajectory.reply[0] == "+")


@reward(steps=True)
def steps(trajectory):
    values = [float(x) for x in trajectory.reply[1:].split(",") if x]
    return list(zip(trajectory.steps, values, strict=True)) if values else Score(None, why="not scored")


def selected(*texts: str, tokens: int = 3, **settings):
    """Rows and their weights of one problem with these replies: "+.5,.7" is right, with two steps of these values."""

    @rollout
    def given(problems, run, *, n: int = 1, temperature: float = 1.0, steps: str | None = None):
        made = []
        for i, text in enumerate(texts):
            length = tokens + i  # of unequal length
            ends = tuple(range(1, 1 + len([x for x in text[1:].split(",") if x])))
            turns = (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.zeros(length, np.int64), np.zeros(length), text=text))
            made.append(Trajectory(problems[0], turns, "end", steps=ends))
        return [made]

    base = registry.build("rejection_sampling").but(rollout=given())
    recipe = registry.method("b_star")(base, temperatures=1, lowest=1.0, **settings)
    run = Run(policy=None, verify=verdict())
    groups = recipe.rollout([ask("Q", "+")], run)
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    return recipe.weighting(batch), run


def test_each_token_of_the_selected_replies_counts_the_same_and_equal_replies_once():
    weights, run = selected("+", "-", "+", "+ b", wanted=2)
    # of 3 and 6 tokens
    assert weights.sum(1).tolist() == pytest.approx([3 / 9, 0, 0, 6 / 9])
    assert run.metrics["balance"] == 1.0


def test_where_nothing_passes_a_fixed_threshold_nothing_is_imitated():
    weights, run = selected("-", "- b", threshold=0.5)
    assert weights.abs().sum() == 0
    assert run.metrics["balance"] == 0


def test_the_least_step_joins_the_verdict_and_the_best_of_the_right_replies_are_taken():
    # scores: 1 + .2 / 5 = 1.04 (least of .9 and .2), 1 + .5 / 5 = 1.1, 0 + .9 / 5 = .18; target 1: the best one
    weights, run = selected("+.9,.2", "+.5,.5", "-.9", process=steps(), target=1.0, wanted=1, threshold=1.05)
    assert weights.sum(1).tolist() == pytest.approx([0, 1, 0])
    # as many as there are: the threshold lets the worse of the right ones in, and keeps the wrong reply out
    weights, run = selected("+.9,.2", "+.5,.5", "-.9", process=steps(), target=3.0, wanted=2)
    assert weights.sum(1).tolist() == pytest.approx([3 / 7, 4 / 7, 0])
    assert run.metrics["threshold"] == pytest.approx(1.04)


def test_a_reply_that_the_process_reward_says_nothing_of_is_not_selected():
    weights, _ = selected("+", "+.5", process=steps())
    assert weights.sum(1).tolist() == pytest.approx([0, 1])


def test_the_baseline_of_the_claim_seeks_neither_a_temperature_nor_a_threshold():
    settings = registry.build("b_star", dict(claim.versus_settings)).rollout.settings
    assert (settings["temperatures"], settings["lowest"], settings["highest"], settings["threshold"]) == (1, 1.0, 1.0, 0.5)
