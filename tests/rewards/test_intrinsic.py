"""Rewards of the policy's own probabilities."""

from __future__ import annotations

import math

import pytest
import torch

from rewardlab.core import Run, Trajectory, ask
from rewardlab.models.embedded import untrained
from rewardlab.rewards.intrinsic import negentropy, self_certainty
from rewardlab.util.outputs import forward_batch


def test_the_two_certainties_are_the_two_kls_to_the_uniform_distribution():
    policy = untrained()
    with torch.no_grad():
        policy.model.embed.mul_(3)  # far from uniform
    (prompt,) = policy.read([Trajectory(ask("1+1?", "2"))], [ask("1+1?").prompt])
    said = policy.write([prompt, prompt], ["The sum is 2", "2"])
    with torch.no_grad():
        hidden = policy.evaluate(forward_batch(said, policy.device), ("hidden",)).hidden
        logp = (hidden @ policy.vocabulary_head().T.float()).log_softmax(-1)
    size = logp.shape[2]
    for reward, kl in (
        (self_certainty(), -math.log(size) - logp.mean(-1)),
        (negentropy(), math.log(len(policy.tokenizer)) + (logp.exp() * logp).sum(-1)),
    ):
        found = [s.value for s in reward([said], Run(policy))[0]]
        # what decided a token stands one position before it
        wanted = [float(kl[i, : len(t) - 1][torch.from_numpy(t.mask[1:])].mean()) for i, t in enumerate(said)]
        assert found == pytest.approx(wanted, abs=1e-4)
        assert all(value > 0 for value in found)


def test_no_certainty_without_a_reply():
    policy = untrained()
    (prompt,) = policy.read([Trajectory(ask("1+1?", "2"))], [ask("1+1?").prompt])
    assert [s.value for s in self_certainty()([[prompt]], Run(policy))[0]] == [None]
    assert self_certainty()([], Run(policy)) == []
