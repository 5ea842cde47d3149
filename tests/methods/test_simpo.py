"""SimPO: mean log-probabilities, and a margin between them."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of

from rewardlab.core import Outputs, Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.simpo import simpo, simpo_loss

RUN = Run(policy=None)

# log pi at the decided positions: preferred -1, -3 (mean -2) and -1 (mean -1); the others -3 (mean -3) and -1, -1, -1 (mean -1)
PAIRS = batch_of([[("rdd", {}), ("rd", {})], [("rd", {}), ("rddd", {})]])
LOGPROBS = torch.tensor([[-9.0, -1, -3, -9], [-9, -3, -9, -9], [-9, -1, -9, -9], [-9, -1, -1, -1]])


def test_the_loss_by_hand():
    # beta 2, gamma 1:  2 (-2 + 3) - 1 = 1;  2 (-1 + 1) - 1 = -1
    loss = simpo_loss(beta=2.0, gamma=1.0)(Outputs(logprobs=LOGPROBS), PAIRS, RUN)
    assert loss.tolist() == pytest.approx([math.log(1 + math.exp(-1)), math.log(1 + math.exp(1))])


def test_length_alone_earns_nothing():
    # the second pair says the same per token in one and in three tokens: only the margin is missing
    loss = simpo_loss(beta=5.0, gamma=0.0)(Outputs(logprobs=LOGPROBS), PAIRS, RUN)
    assert loss[1] == pytest.approx(math.log(2))


def test_the_gradient_reaches_every_token_by_its_share_of_the_reply():
    # d loss / d log pi = -sigmoid(-1) beta / |y_w| for the preferred, + for the other
    logprobs = LOGPROBS.clone().requires_grad_()
    simpo_loss()(Outputs(logprobs=logprobs), PAIRS, RUN)[0].backward()
    far = 1 / (1 + math.e)
    assert logprobs.grad is not None
    assert logprobs.grad[:2].tolist() == [pytest.approx([0, -far, -far, 0]), pytest.approx([0, 2 * far, 0, 0])]


def test_it_needs_no_reference_and_refuses_what_is_no_pair():
    assert simpo().needs == ()
    three = batch_of([[("rd", {}), ("rd", {}), ("rd", {})]])
    with pytest.raises(RewardlabError, match="two rows"):
        simpo_loss()(Outputs(logprobs=torch.zeros(3, 2)), three, RUN)
