"""The scalar head of a critic or a reward model, in both text policies."""

from __future__ import annotations

import pytest
import torch

from rewardlab.core import Trajectory, ask
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.outputs import forward_batch


@pytest.mark.parametrize("kind", [LlamaPolicy, HFPolicy])
def test_values_are_finer_than_the_format_of_computation(kind, tmp_path):
    """In bfloat16 scores near 4 would be multiples of 1/32: replies of nearly the same worth would tie."""
    untrained().save(tmp_path)
    critic = kind.load(tmp_path, "cpu", "bfloat16").copy("critic", value_head=True)
    head = critic.value_head if kind is HFPolicy else critic.model.value_head
    with torch.no_grad():
        head += torch.arange(head.shape[1]) / 32
    (row,) = critic.read([Trajectory(ask("1 + 2"))], [ask("1 + 2").prompt])
    values = critic.evaluate(forward_batch([row], critic.device), ("value",)).value.detach().float()
    # a number of bfloat16 is one of float32 whose lower half is 0
    assert (values.view(torch.int32) & 0xFFFF).any()
