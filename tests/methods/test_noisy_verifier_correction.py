"""Noisy-verifier correction: the credit of verdicts from a verifier that errs."""

from __future__ import annotations

import pytest
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.methods.objectives.noisy_verifier_correction import corrected, noisy_verdict
from rewardlab.rewards.task import correct

RUN = Run(policy=None)


def credit(way: str, values: list[list[float | None]]) -> list[float]:
    recipe = registry.build("noisy_verifier_correction", {"way": way})
    batch = batch_of([[("rdd", {"corrected": outcome(x)}) for x in row] for row in values])
    found = recipe.credit(batch.reward, batch, RUN)
    assert (found[:, 1] == found[:, 2]).all()
    return found[:, 1].tolist()


def test_forward_weights_reach_every_token_and_no_mean_is_taken_out():
    # a group whose replies were all rejected still teaches: GRPO would give it 0
    assert credit("forward", [[0.3, -0.7], [-0.7, -0.7]]) == pytest.approx([0.3, -0.7, -0.7, -0.7])


def test_backward_rewards_have_the_mean_of_the_batch_as_their_baseline():
    # f = .1, g = .3: 1.5, -1/6, -1/6 and no verdict; mean 7/18
    found = credit("backward", [[1.5, -1 / 6], [-1 / 6, None]])
    assert found == pytest.approx([1.5 - 7 / 18, -1 / 6 - 7 / 18, -1 / 6 - 7 / 18, 0.0])


def test_the_base_s_reward_is_the_verifier():
    assert registry.build("noisy_verifier_correction").reward == corrected(inner=correct(), way="forward")
    base = registry.build("grpo").but(reward=noisy_verdict())
    assert registry.method("noisy_verifier_correction")(base, way="backward").reward == corrected(inner=noisy_verdict())
