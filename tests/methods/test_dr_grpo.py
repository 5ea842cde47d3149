"""Dr. GRPO: credit without the deviation, weights without the length, and how long wrong replies are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Turn, ask
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dr_grpo import wrong_length
from rewardlab.verifiers.match import final_number

RUN = Run(policy=None)

# a right reply of two tokens, wrong ones of one and of four; mean 1/3
GROUP = [("rdd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)}), ("rdddd", {"a": outcome(0.0)})]


def gradient(name: str, settings: dict, max_new: int = 0) -> list[list[float]]:
    """Of the loss by each token's log-prob, on policy.  max_new: the longest reply of the run."""
    recipe, batch = registry.build(name, settings), batch_of([GROUP])
    batch.credit = recipe.credit(batch.reward, batch, RUN)
    logprobs = torch.zeros(batch.mask.shape, requires_grad=True)
    weighed = weigh(batch, recipe.objective, recipe.weighting, max_new)
    losses = losses_of(recipe.objective, Outputs(logprobs=logprobs), weighed, RUN)
    sum(losses.values()).backward()
    return [row[where].tolist() for row, where in zip(logprobs.grad, batch.mask, strict=True)]


def test_every_token_is_pushed_alike_however_long_its_reply():
    # -A / (3 rows * 10): A is 2/3, -1/3, -1/3
    right, wrong = -2 / 90, 1 / 90
    expected = [[right] * 2, [wrong], [wrong] * 4]
    assert gradient("dr_grpo", {"length": 10}) == [pytest.approx(row) for row in expected]
    # the constant is the longest reply that may be sampled, if no other is given
    assert gradient("dr_grpo", {}, max_new=10) == [pytest.approx(row) for row in expected]
    assert gradient("dr_grpo", {"length": 10}, max_new=99) == [pytest.approx(row) for row in expected]
    with pytest.raises(RewardlabError, match="give it a length"):
        gradient("dr_grpo", {})


def test_grpo_pushes_long_wrong_replies_down_less():
    # deviations 2/3, -1/3, -1/3: variance (4 + 1 + 1)/9 / 2 = 1/3, std .577350; over 3 rows and the length of each
    scale = 1 / (3 * (1 / 3) ** 0.5)
    expected = [[-2 / 3 * scale / 2] * 2, [1 / 3 * scale], [1 / 3 * scale / 4] * 4]
    assert gradient("grpo", {}) == [pytest.approx(row, rel=1e-3) for row in expected]


class Letters(Replies):
    """Every character is a token."""

    def extend(self, trajectories, sampling, rng):
        turns = [Turn("policy", np.zeros(len(text), np.int64), text=text) for text in self.replies]
        return [t.plus(turn, "end") for t, turn in zip(trajectories, turns, strict=True)]


def measured(said: list[str], *gold: str) -> dict[str, float]:
    return wrong_length(n=2)([ask("1+1?", g) for g in gold], Run(Letters(said), verify=final_number()))


def test_lengths_of_wrong_and_right_replies_by_hand():
    found = measured(["2", "3", "1+1=3", "well, 2"], "2", "2")
    assert found["wrong_length"] == 3  # of 1 and 5
    assert found["right_length"] == 4  # of 1 and 7
    assert found["pass@1"] == 0.5


def test_what_has_no_verdict_is_neither_right_nor_wrong():
    found = measured(["2", "3", "12345", "123456"], "2", "no number")
    assert (found["wrong_length"], found["right_length"], found["pass@1"]) == (1, 1, 0.25)
    assert math.isnan(measured(["2", "2"], "2")["wrong_length"])
