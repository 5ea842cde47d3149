"""What the tests of vLLM as sampler share: prompts, an update, and how far its log-probs are from the policy's."""

import numpy as np
import torch

from rewardlab.core import Trajectory, ask

QUESTIONS = ["1 + 2 = ?", "3 + 4 = ?", "5 + 9 - 2 = ?"]
CLOSE = 2e-4
RNG = torch.Generator()
# vLLM's kernels for CPUs want heads of 32 numbers at least
SHAPE = {
    "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256,
    "max_position_embeddings": 512,
}  # fmt: skip


def begun(policy):
    rows = [Trajectory(ask(q, "")) for q in QUESTIONS for _ in range(2)]
    return policy.read(rows, [r.problem.prompt for r in rows])


def far(policy, done):
    """The largest difference between the log-probs that were recorded and those that the policy computes."""
    computed = policy.score(done)
    pairs = [(t.turns[-1].logprobs, c[len(t) - len(t.turns[-1].ids) :]) for t, c in zip(done, computed, strict=True)]
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def change(policy):
    # by the optimiser that trains here, whose changes PyTorch's counters do not see
    optimiser = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=0.05, fused=True)
    for p in policy.parameters():
        if p.requires_grad:
            p.grad = torch.randn(p.shape, generator=RNG)
    optimiser.step()
