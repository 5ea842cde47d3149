"""On a GPU, where there is one: samples, log-probs and gradients are those of the CPU, and bfloat16 is near float32."""

from __future__ import annotations

import copy

import pytest
import torch
from checkpoints import checkpoint

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


@pytest.fixture(params=["lean", "hf"])
def on(request, tmp_path):
    """(device, format) -> the same policy there."""
    if request.param == "lean":
        model = untrained().model
        return lambda device, dtype: LlamaPolicy(copy.deepcopy(model), tokenizer(), torch.device(device), dtype)
    checkpoint(tmp_path, tokenizer())
    names = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
    return lambda device, dtype: HFPolicy.load(tmp_path, device, names[dtype])


def replies(policy, n=8):
    problems = [ask(f"{i}+{i}=") for i in range(n)]
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return policy.extend(asked, Sampling(16), torch.Generator().manual_seed(0))


def gradient(policy, rows):
    """Log-probs (B, T) of recorded rows, and the gradient of their sum."""
    batch = collate([[t] for t in rows], None, policy.device)
    out = policy.evaluate(batch, ("logprobs",))
    torch.where(batch.mask, out.logprobs, 0.0).sum().backward()
    return out.logprobs.detach().cpu(), torch.cat([p.grad.float().cpu().flatten() for p in policy.parameters()])


def test_float32_is_that_of_the_cpu(on):
    here, there = on("cpu", torch.float32), on("cuda:0", torch.float32)
    rows, others = replies(here), replies(there)
    assert [t.ids.tolist() for t in rows] == [t.ids.tolist() for t in others]
    (a, g), (b, h) = gradient(here, rows), gradient(there, rows)
    torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)
    assert torch.cosine_similarity(g, h, dim=0) > 0.9999


def test_bfloat16_is_near_float32_and_its_sampler_near_its_trainer(on):
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        pytest.skip("this GPU has no bfloat16")
    exact, rounded = on("cuda:0", torch.float32), on("cuda:0", torch.bfloat16)
    rows = replies(rounded)
    (a, g), (b, h) = gradient(exact, rows), gradient(rounded, rows)
    assert (a - b).abs().max() < 0.3
    assert (a - b).abs().mean() < 0.03
    assert torch.cosine_similarity(g, h, dim=0) > 0.98
    recorded = collate([[t] for t in rows], None, torch.device("cpu"))
    assert (recorded.old - b).abs()[recorded.mask].mean() < 0.03
