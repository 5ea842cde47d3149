"""Distillation over the whole vocabulary: from the state before a token, at decisions alone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from rewardlab.core import Outputs, Run
from rewardlab.methods.imitation.resa_sae_tuning import like_teacher
from rewardlab.models.embedded import untrained
from tests.helpers.rows import batch_of, outcome


def test_each_decision_is_compared_in_the_state_before_it():
    policy, teacher = untrained().copy("policy"), untrained().copy("teacher")
    with torch.no_grad():
        teacher.model.embed.mul_(1.5)
    g = torch.Generator().manual_seed(0)
    batch = batch_of([[("rdd", {"correct": outcome(1.0)}), ("dd", {"correct": outcome(0.0)})]])
    width = policy.vocabulary_head().shape[1]
    hidden, wanted = torch.randn(2, 2, 3, width, generator=g)
    batch.columns["teacher.hidden"] = wanted
    run = Run(policy, models={"teacher": teacher})
    losses = like_teacher()(Outputs(hidden=hidden), batch, run)
    p = F.log_softmax(wanted @ teacher.vocabulary_head().T, -1)
    q = F.log_softmax(hidden @ policy.vocabulary_head().T, -1)
    kl = (p.exp() * (p - q)).sum(-1)
    # row 0 decides positions 1 and 2, from the states at 0 and 1; row 1 decides 0, which nothing predicts, and 1
    expected = torch.zeros(2, 3)
    expected[0, 1:] = kl[0, :2]
    expected[1, 1] = kl[1, 0]
    torch.testing.assert_close(losses, expected)
    same = like_teacher()(Outputs(hidden=wanted), batch, Run(teacher, models={"teacher": teacher}))
    assert same.detach().abs().max() == pytest.approx(0.0, abs=1e-5)
