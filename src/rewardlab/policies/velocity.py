"""A flow in the space of a model's hidden states: which way noise must move to become a state that good replies pass through.

    x_s = s x + (1 - s) noise;    loss = mean over the entries of (v(x_s, s, context, layer) - (x - noise))^2

The velocity deviation, this loss at one time s, is high for states that the field has not learnt. `context` is the state one token
earlier, at the same layer. The network follows that of Jinghaoleven/RLFR (14bf504, flow_simple.py): residual blocks with scale,
shift and gate by time, layer and context. There the last layer is modulated too, and time and layer pass two layers, not one.
Zhang et al. 2025, arXiv:2510.10201
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.core import Batch

States = list[tuple[float, Tensor]]
"""For each layer its height, 0 to 1, and its states (B, T, hidden)."""


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.modulation = nn.RMSNorm(width), nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        # zeros: each block begins as the identity
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale, gate = self.modulation(F.silu(c)).chunk(3, -1)
        return x + gate * self.mlp(self.norm(x) * (1 + scale) + shift)


class Field(nn.Module):
    """(n, width) -> (n, width): the velocity at x, time s, one for all or (n, 1), under the context and the height of the layer."""

    def __init__(self, width: int, blocks: int):
        super().__init__()
        self.state, self.context = nn.Linear(width, width), nn.Linear(width, width)
        self.time, self.height = nn.Linear(width, width), nn.Linear(width, width)
        self.blocks, self.norm = nn.ModuleList(Block(width) for _ in range(blocks)), nn.RMSNorm(width)
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, s: float | Tensor, context: Tensor, height: float) -> Tensor:
        c = self.context(context) + self.time(waves(s, x)) + self.height(waves(height, x))
        x = self.state(x)
        for block in self.blocks:
            x = block(x, c)
        return self.out(self.norm(x))


def waves(number: float | Tensor, like: Tensor) -> Tensor:
    """(width,) sines and cosines of a number from 0 to 1; (n, width) of numbers (n, 1)."""
    half = like.shape[1] // 2
    angles = 1000 * number * torch.exp(-math.log(10000) * torch.arange(half, device=like.device) / max(1, half))
    return F.pad(torch.cat((angles.cos(), angles.sin()), -1), (0, like.shape[1] - 2 * half))


class Flow:
    """A field with its optimiser.  memory: where both are kept between steps, a dictionary of a run's memory, empty at first."""

    def __init__(self, memory: dict[str, Any], states: States, blocks: int, lr: float, seed: int):
        self.memory, first = memory, states[0][1]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.field = Field(first.shape[-1], blocks).to(first.device)
        self.optimiser = torch.optim.AdamW(self.field.parameters(), lr=lr, weight_decay=0.01)
        if "weights" in memory:
            self.field.load_state_dict(memory["weights"])
            self.optimiser.load_state_dict(memory["optimiser"])
        else:
            real = torch.cat([x.flatten(0, 1)[x.flatten(0, 1).any(1)] for _, x in states])
            # entries of hidden states differ in size by orders of magnitude, and the largest would be all that counts
            memory["mean"], memory["scale"] = real.mean(0), 1 / real.std(0).clamp(min=1e-3)

    def deviations(self, states: States, chosen: Tensor, time: float | None, rng: torch.Generator) -> Tensor:
        """(n,) mean over the layers of the deviation at the n positions `chosen` (B, T), with gradient; each needs one before it.

        time: s; None: each state its own, the sigmoid of a normal number.
        """
        found = []
        for height, table in states:
            x = (table - self.memory["mean"]) * self.memory["scale"]
            target, context = x[chosen], x.roll(1, 1)[chosen]
            noise = torch.randn(target.shape, generator=rng).to(target)
            s = torch.randn(len(target), 1, generator=rng).to(target).sigmoid() if time is None else time
            velocity = self.field(s * target + (1 - s) * noise, s, context, height)
            found.append((velocity - (target - noise)).square().mean(1))
        return torch.stack(found).mean(0)

    @torch.enable_grad()
    def learn(self, states: States, chosen: Tensor, time: float | None, rng: torch.Generator) -> float:
        """A step of the field on the states `chosen`; the loss before it."""
        loss = self.deviations(states, chosen, time, rng).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.memory["weights"], self.memory["optimiser"] = self.field.state_dict(), self.optimiser.state_dict()
        return float(loss.detach())


def states_of(policy: Any, batch: Batch, heights: Sequence[float]) -> States:
    """The states of a model at layers of these heights, as shares of its depth."""
    layers = [min(round(height * policy.depth), policy.depth - 1) for height in heights]
    return [(layer / policy.depth, policy.activation_table(batch, layer)) for layer in layers]


def with_previous(batch: Batch) -> Tensor:
    """(B, T) decisions before which another token stands."""
    return batch.mask & (torch.arange(batch.ids.shape[1], device=batch.ids.device) > 0)
