"""A flow-matching denoiser of points as a policy: every stochastic denoising step is a decision.

A row of a batch is the condition (read from the prompt's `data`), noise x_1, and then the latents of each step down to x_0:

    position   0          1         2 .. steps + 1
    ids        condition  x_1       x after step 1 .. steps

An ODE step, x + v dt, is deterministic. An SDE step keeps the same marginals and is sampled from a Gaussian:

    mean = x + (v + sigma_t^2 / (2 t) (x + (1 - t) v)) dt,   std = sigma_t sqrt(|dt|),   sigma_t = a sqrt(t / (1 - t))

Liu et al. 2025 (Flow-GRPO), arXiv:2505.05470. As in their code, sigma of the first step uses the 1 - t of the second,
since its own is 0. A log-prob is the sum over coordinates (the density itself), where their code takes the mean.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewardlab.core import Batch, Message, Outputs, Sampling, TokenCount, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.weights import HasWeights
from rewardlab.util.device import device_of

CONFIG: dict[str, Any] = {"model_type": "rewardlab_denoiser", "size": 2, "hidden": 64, "layers": 3, "steps": 10, "noise": 0.7}
WAVES = 4
"""Frequencies of the time embedding."""
FIRST = 2
"""The position of the first denoising step."""


class Velocity(nn.Module):
    """v(x, t, condition), trained to be noise - data: (n, size), (n,), (n, size) -> (n, size).

    Time and condition scale and shift every layer (Perez et al. 2018, arXiv:1709.07871).
    """

    def __init__(self, size: int, hidden: int, layers: int):
        super().__init__()
        self.told = nn.Linear(size + 1 + 2 * WAVES, hidden)
        self.enter, self.last = nn.Linear(size, hidden), nn.Linear(hidden, size)
        self.inner = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.film = nn.ModuleList(nn.Linear(hidden, 2 * hidden) for _ in range(layers))

    def forward(self, x: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        angle = math.pi * t[:, None] * torch.arange(1, WAVES + 1, device=t.device)
        conditioning = F.silu(self.told(torch.cat((condition, t[:, None], angle.sin(), angle.cos()), 1)))
        h = self.enter(x)
        for layer, film in zip(self.inner, self.film, strict=True):
            scale, shift = film(conditioning).chunk(2, 1)
            h = F.silu(layer(h) * (1 + scale) + shift)
        return self.last(h)


class Denoiser(HasWeights):
    """A velocity network with its schedule: `steps` equal steps from t = 1 to 0; `noise` is the a of sigma_t."""

    step = 0

    def __init__(self, config: dict[str, Any], device: torch.device, name: str = "policy"):
        self.config, self.device, self.name = CONFIG | config, device, name
        self.context, self.token_count = 1 << 20, TokenCount()
        self.model = Velocity(*(self.config[k] for k in ("size", "hidden", "layers"))).to(device)
        self.steps = int(self.config["steps"])
        t = torch.linspace(1.0, 0.0, self.steps + 1, device=device)
        self.times, self.dt = t[:-1], -1.0 / self.steps  # time runs from noise (1) to data (0)
        # at t = 1 the denominator 1 - t is 0: the first step takes that of the second
        room = 1.0 - torch.cat((t[1:2], t[1:-1])) if self.steps > 1 else torch.ones_like(self.times)
        self.sigma = self.config["noise"] * (self.times / room).sqrt()

    def noise_at(self, width: int) -> Tensor:
        """(width,) the std sigma_t sqrt(|dt|) of a stochastic step, by position in a row; 0 at condition and noise."""
        levels = self.sigma.new_zeros(FIRST + self.steps)
        levels[FIRST:] = self.sigma * math.sqrt(-self.dt)
        return levels[:width]

    def initialise(self, rng: torch.Generator) -> Denoiser:
        """Random weights from `rng`: uniform within 1/sqrt(inputs)."""
        with torch.no_grad():
            for layer in (m for m in self.model.modules() if isinstance(m, nn.Linear)):
                for p in layer.parameters():
                    p.copy_((torch.rand(p.shape, generator=rng) * 2 - 1) / math.sqrt(layer.in_features))
        return self

    # ---- weights -----------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto") -> Denoiser:
        """Read a folder that `save` wrote."""
        policy = cls(json.loads((Path(folder) / "config.json").read_text()), device_of(device))
        policy.load_state(load_file(Path(folder) / "model.safetensors"))
        return policy

    def save(self, folder: Path | str) -> None:
        (Path(folder) / "config.json").write_text(json.dumps(self.config, indent=2))
        save_file({k: v.cpu().contiguous() for k, v in self.state().items()}, Path(folder) / "model.safetensors")

    def copy(self, name: str, value_head: bool = False) -> Denoiser:
        if value_head:
            raise RewardlabError("a denoiser takes no value head: use a method without a critic")
        other = Denoiser(self.config, self.device, name)
        other.model = copy.deepcopy(self.model)
        return other

    def activation_bytes(self, tokens: int) -> int:
        """Roughly the bytes that a forward and backward pass over so many decisions keeps in memory."""
        return 8 * tokens * self.config["hidden"] * self.config["layers"]

    # ---- reading -----------------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Start rows with the condition that the messages carry as `data`."""
        return [t.plus(self._condition(t, new)) for t, new in zip(trajectories, messages, strict=True)]

    def _condition(self, trajectory: Trajectory, new: Sequence[Message]) -> Turn:
        points = [np.asarray(m.data, np.float32) for m in new if m.data is not None]
        if len(trajectory) or len(points) != 1 or points[0].shape != (self.config["size"],):
            raise RewardlabError(
                f"a denoiser reads one prompt that holds {self.config['size']} numbers (Message.data), and nothing after it; "
                f"this is not one: {trajectory.problem.question[:60]!r}. Play a task of points, such as flows"
            )
        return Turn(None, points[0][None], text="\n".join(m.text for m in new))

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        raise RewardlabError("a denoiser cannot learn from recorded text; its data are points")

    def pieces(self, ids: np.ndarray) -> list[str]:
        """Each latent as text."""
        return [f"({', '.join(f'{x:.2f}' for x in row)}) " for row in ids]

    # ---- sampling ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Take up to `max_new` steps in each row, sampling its noise if it has none yet.

        Temperature 0 follows the ODE, in which nothing is decided. Above 0 every step is sampled, and the temperature scales its
        standard deviation.
        """
        if not trajectories:
            return []
        rows = self._begun(trajectories, rng)
        place = torch.tensor([len(t) - FIRST for t in rows], device=self.device)
        left = (self.steps - place).clamp(0, sampling.max_new)
        x, condition = (self._tensor([t.ids[at] for t in rows]) for at in (-1, 0))
        table = x.new_zeros((len(rows), max(1, int(left.max())), x.shape[1]))
        raw, sampled = torch.zeros(2, *table.shape[:2], device=self.device)
        for i in range(int(left.max())):
            # rows may be at different steps: those that are done sit out
            live = (left > i).nonzero().squeeze(1)
            mean, std = self._next(x[live], place[live] + i, condition[live], sampling.temperature > 0)
            scaled = std * sampling.temperature
            x[live] = mean + scaled * torch.randn(mean.shape, generator=rng).to(self.device) if sampling.temperature > 0 else mean
            table[live, i] = x[live]
            if sampling.temperature > 0:
                # under the policy itself, and under the tempered distribution sampled from
                raw[live, i], sampled[live, i] = gaussian(x[live], mean, std), gaussian(x[live], mean, scaled)
        self.token_count.generated += int(left.sum())
        return self._written(rows, left, table, raw, sampled, sampling.temperature > 0)

    def _begun(self, trajectories: Sequence[Trajectory], rng: torch.Generator) -> list[Trajectory]:
        noise = torch.randn((len(trajectories), self.config["size"]), generator=rng).numpy()
        return [t.plus(Turn(None, noise[i : i + 1])) if len(t) < FIRST else t for i, t in enumerate(trajectories)]

    def _written(
        self, rows: list[Trajectory], count: Tensor, table: Tensor, raw: Tensor, sampled: Tensor, decided: bool
    ) -> list[Trajectory]:
        extended = []
        for t, n, *columns in zip(rows, count.tolist(), *(x.cpu().numpy() for x in (table, raw, sampled)), strict=True):
            ids, logprobs, sampled_as = (x[:n].copy() for x in columns)
            ended = len(t) - FIRST + n == self.steps
            # ODE steps are read, not decided: no author, so they are outside the mask
            turn = Turn(None, ids)
            if decided:
                turn = Turn(self.name, ids, logprobs, sampled_as, text=self.spell(ids[-1:]), step=self.step)
            extended.append(t.plus(turn, "end" if ended else "length") if n else t)
        return extended

    def spell(self, ids: np.ndarray) -> str:
        return "".join(self.pieces(ids)).strip()

    def flow(self, noise: Tensor, condition: Tensor) -> Tensor:
        """(n, steps, size) latents of the ODE from noise (n, size), differentiable in the noise; the last is the data."""
        self.token_count.generated += len(noise) * self.steps
        path, x = [], noise
        for i in range(self.steps):
            x, _ = self._next(x, torch.full((len(x),), i, device=self.device), condition, False)
            path.append(x)
        return torch.stack(path, 1)

    # ---- log-probs ---------------------------------------------------------------------------------------------------

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every denoising step as if it were stochastic, (len,); 0 for condition and noise."""
        self.token_count.scored += sum(map(len, trajectories))
        logprobs = []
        with torch.no_grad():
            for t in trajectories:
                ids = self._tensor(t.ids)[None]
                mask = torch.arange(len(t), device=self.device)[None] >= FIRST
                logprobs.append(self._at_steps(ids, mask)[0][0].cpu().numpy())
        return logprobs

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and entropies of decided steps, (B, T), with gradient."""
        if per_token or set(wants) - {"logprobs", "entropy"}:
            raise RewardlabError("a denoiser outputs log-probs and entropies alone; use a method that needs nothing else")
        self.token_count.scored += int(batch.mask.sum())  # only decided steps are computed
        logprobs, entropy = self._at_steps(batch.ids, batch.mask)
        return Outputs(logprobs=logprobs, entropy=entropy)

    def _at_steps(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        # decided steps of all rows as one flat batch (n,)
        row, at = mask.nonzero(as_tuple=True)
        mean, std = self._next(ids[row, at - 1], at - FIRST, ids[row, 0], True)
        # the entropy of a Gaussian depends on its fixed std alone: it has no gradient
        entropy = (0.5 * math.log(2 * math.pi * math.e) + std.log()).expand_as(mean).sum(1)
        empty = mean.new_zeros(mask.shape)
        logprobs = empty.masked_scatter(mask, gaussian(ids[row, at], mean, std))
        return logprobs, empty.masked_scatter(mask, entropy)

    def _next(self, x: Tensor, place: Tensor, condition: Tensor, stochastic: bool) -> tuple[Tensor, Tensor]:
        """Mean (n, size) and standard deviation (n, 1) of the latents after step `place` (n,)."""
        t, sigma = self.times[place][:, None], self.sigma[place][:, None]
        v = self.model(x, t.squeeze(1), condition)
        if not stochastic:
            return x + v * self.dt, torch.zeros_like(sigma)
        pull = sigma.square() / (2 * t) * (x + (1 - t) * v)
        return x + (v + pull) * self.dt, sigma * math.sqrt(-self.dt)

    def _tensor(self, rows: Any) -> Tensor:
        return torch.from_numpy(np.asarray(rows, np.float32)).to(self.device)


def gaussian(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(n,) log N(x; mean, std^2 I) for x (n, size), std (n, 1)."""
    return (-0.5 * ((x - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)).sum(1)
