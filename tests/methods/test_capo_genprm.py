"""CAPO: tokens of wrong steps are paid less than the others of their reply."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.credit.tokens import over_steps
from rewardlab.rewards.critiques import wrong_steps

RUN = Run(policy=None)


def row(pattern: str, right: float | None, wrong: dict[int, float]):
    return pattern, {"correct": outcome(right, 2.0), "wrong_steps": steps(wrong, -1.0)}


def credit(*groups):
    batch = batch_of(groups)
    return registry.build("capo_genprm").credit(batch.reward, batch, RUN), batch


def test_tokens_of_a_step_get_what_stands_at_its_end():
    reward = torch.tensor([[0.0, 0.0, 3.0, 0.0, 4.0, 0.0]])
    rewarded = torch.tensor([[False, False, True, False, True, False]])
    mask = torch.tensor([[False, True, True, True, True, True]])
    assert over_steps(reward, rewarded, mask).tolist() == [[0, 3, 3, 4, 4, 0]]


def test_token_rewards_are_normalised_over_the_tokens_of_the_group():
    # right, its second step (1 token) wrong: 2 2 1;  wrong, its only step (2 tokens) wrong: -1 -1
    # mean 3/5; squares of 1.4, 1.4, .4, -1.6, -1.6: 9.2, over 4: 2.3, std 1.516575
    found, _ = credit([row("rddd", 1.0, {2: 0.0, 3: 1.0}), row("rdd", 0.0, {2: 1.0})])
    assert found[0].tolist() == pytest.approx([0, 1.4 / 1.5167, 1.4 / 1.5167, 0.4 / 1.5167], abs=1e-4)
    assert found[1].tolist() == pytest.approx([0, -1.6 / 1.5167, -1.6 / 1.5167, 0], abs=1e-4)


def test_a_group_in_which_all_are_right_still_learns_from_its_flawed_steps():
    found, _ = credit([row("rdd", 1.0, {1: 1.0, 2: 0.0}), row("rdd", 1.0, {1: 0.0, 2: 0.0})])
    # 1 2 / 2 2: mean 7/4, squares 9/16 + 3/16 = 3/4 over 3: std 1/2
    assert found[:, 1:].flatten().tolist() == pytest.approx([-1.5, 0.5, 0.5, 0.5], abs=1e-3)
    nothing, _ = credit([row("rdd", 1.0, {1: 0.0, 2: 0.0}), row("rddd", 1.0, {3: 0.0})])
    assert nothing.abs().max() == 0


def test_a_reply_without_a_verdict_is_in_no_mean_and_one_alone_gets_nothing():
    with_it, _ = credit([row("rdd", 1.0, {1: 1.0, 2: 0.0}), row("rdd", 1.0, {1: 0.0, 2: 0.0}), row("rd", None, {})])
    assert with_it[:2, 1:].flatten().tolist() == pytest.approx([-1.5, 0.5, 0.5, 0.5], abs=1e-3)
    assert with_it[2].tolist() == [0, 0, 0]
    assert credit([row("rd", 1.0, {1: 0.0})])[0].abs().max() == 0


def test_the_penalty_is_smaller_than_the_outcome_and_critics_are_copies_of_the_start():
    recipe = registry.build("capo_genprm", {"votes": 3})
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("critic", "copy:policy", 0)]
    assert recipe.rollout.settings["steps"] == "newline"
    given = registry.build("capo_genprm", {"critiques": wrong_steps(model="reference")})
    assert given.also == ()
