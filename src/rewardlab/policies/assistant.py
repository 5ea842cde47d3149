"""A small network that reads a problem through a language model, and writes latents before its reply: the policy of a soft prompt.

    (mean_1 .. mean_m)(x) = f(h(x));    z_t ~ N(mean_t, diag std_t^2);    vector_t = centre + (scale * z_t) directions

h(x) (hidden,) is what the model passes on at the end of the prompt, without gradient. The vectors that it then reads lie in the
principal directions of its own token embeddings, of which z = 0 is the mean and a z of size 1 as far from it as tokens are.
"""

from __future__ import annotations

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

from rewardlab.core import Batch, Outputs, TokenCount, Trajectory, Turn, forward_batch
from rewardlab.errors import RewardlabError

from .text import TextPolicy
from .vectors import NO_TOKEN
from .weights import HasWeights

KIND = "rewardlab_assistant"
"""The model type of its checkpoints."""
FILE = "model.safetensors"


class Network(nn.Module):
    """f, the stds, and the frozen map from latents to vectors."""

    def __init__(self, embeddings: Tensor, count: int, size: int, width: int, std: float):
        super().__init__()
        hidden, generator = embeddings.shape[1], torch.Generator().manual_seed(0)
        if size > min(embeddings.shape):
            raise RewardlabError(f"latents of {size} numbers need as many directions, and the embeddings have {min(embeddings.shape)}")
        self.into = nn.Parameter(torch.randn(width, hidden, generator=generator) * hidden**-0.5)
        # zeros: at first every problem has the same means, 0
        self.out = nn.Parameter(torch.zeros(count * size, width))
        self.bias = nn.Parameter(torch.zeros(count * size))
        self.log_std = nn.Parameter(torch.full((count, size), math.log(std)))
        centred = embeddings - embeddings.mean(0)
        # of the covariance, whose size is that of the model's width and not of its vocabulary; eigenvalues ascend
        spread, directions = torch.linalg.eigh((centred.T @ centred / len(embeddings)).double())
        self.register_buffer("centre", embeddings.mean(0))
        self.register_buffer("scale", spread.flip(0)[:size].clamp(min=0).sqrt().float())
        self.register_buffer("directions", directions.T.flip(0)[:size].float().contiguous())

    def forward(self, states: Tensor) -> Tensor:
        """(n, hidden) -> means (n, m, size)."""
        states = F.layer_norm(states, states.shape[1:])
        return (torch.tanh(states @ self.into.T) @ self.out.T + self.bias).view(-1, *self.log_std.shape)

    def project(self, latents: Tensor) -> Tensor:
        return self.centre + (latents * self.scale) @ self.directions

    def latents_of(self, vectors: Tensor) -> Tensor:
        return (vectors - self.centre) @ self.directions.T / self.scale


class Assistant(HasWeights):
    """Writes `count` vectors before a reply of `reader`, which stays as it is.

    size: numbers of a latent.  width: of the network.  std: of latents at first; it learns with the rest unless `fixed_std`.
    """

    def __init__(
        self, reader: TextPolicy, count: int = 4, size: int = 16, width: int = 64, std: float = 1.0, fixed_std: bool = False,
        name: str = "assistant",
    ):  # fmt: skip
        self.made = {"count": count, "size": size, "width": width, "std": std, "fixed_std": fixed_std}
        self.reader, self.name, self.count, self.dtype = reader, name, count, torch.float32
        self.device, self.step, self.token_count = reader.device, 0, TokenCount()
        self.model = Network(reader.token_embeddings().detach().float().cpu(), count, size, width, std).to(self.device)
        self.model.log_std.requires_grad_(not fixed_std)

    @classmethod
    def load(cls, folder: Path | str, reader: TextPolicy, name: str = "assistant") -> Assistant:
        """One that was saved, for the model that it was trained with."""
        config = json.loads((Path(folder) / "config.json").read_text("utf-8"))
        if config.pop("model_type", None) != KIND:
            raise RewardlabError(f"{folder} holds no assistant")
        loaded = cls(reader, name=name, **config)
        loaded.load_state(load_file(Path(folder) / FILE))
        return loaded

    def save(self, folder: Path | str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": KIND, **self.made}, indent=2))
        save_file({k: v.cpu().contiguous() for k, v in self.state().items()}, Path(folder) / FILE)

    def state(self) -> dict[str, Tensor]:
        """All of it, the map to vectors too, which another machine may round otherwise."""
        return {k: v.detach() for k, v in self.model.state_dict().items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        mine = {k: tuple(v.shape) for k, v in self.model.state_dict().items()}
        if {k: tuple(v.shape) for k, v in state.items()} != mine:
            raise RewardlabError("this assistant was trained with a model of another width, or has other settings")
        self.model.load_state_dict(state)

    # ---- writing -----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def write(self, rows: Sequence[Trajectory], rng: torch.Generator | None) -> list[Trajectory]:
        """The rows with latents after what was read. Without rng these are the means."""
        if not self.count:
            return list(rows)
        means, std = self._means(rows), self.model.log_std.exp()
        noise = torch.zeros(means.shape) if rng is None else torch.randn(means.shape, generator=rng, device=rng.device)
        vectors = self.model.project(means + std * noise.to(self.device))
        # of what can be found again from the vectors, which are all that is kept
        logprobs = self._logprobs(self.model.latents_of(vectors), means).cpu().numpy()
        self.token_count.generated += self.count * len(rows)
        ids = np.full(self.count, NO_TOKEN, np.int64)
        return [
            t.plus(Turn(self.name, ids, p, p, step=self.step, vectors=v))
            for t, v, p in zip(rows, vectors.cpu().numpy(), logprobs, strict=True)
        ]

    def _means(self, rows: Sequence[Trajectory]) -> Tensor:
        """(n, m, size) of the text that comes before the latents of each row; with gradient."""
        prompts = [t.ids for t in rows]
        # equal prompts are read once
        first = {p.tobytes(): i for i, p in reversed(list(enumerate(prompts)))}
        number = {key: k for k, key in enumerate(first)}
        states = self._states([rows[i] for i in first.values()])
        return self.model(states)[[number[p.tobytes()] for p in prompts]]

    @torch.no_grad()
    def _states(self, rows: Sequence[Trajectory]) -> Tensor:
        """(n, hidden) the reader's states at the ends of rows."""
        batch = forward_batch(rows, self.reader.device)
        hidden = self.reader.evaluate(batch, ("hidden",)).hidden
        return hidden[torch.arange(len(rows), device=hidden.device), batch.length - 1]

    def _logprobs(self, latents: Tensor, means: Tensor) -> Tensor:
        """(n, m) log-densities."""
        log_std = self.model.log_std
        return -(((latents - means) / log_std.exp()) ** 2 / 2 + log_std + math.log(2 * math.pi) / 2).sum(2)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs of the latents in the rows of the batch, (B, T), and as hidden states (B, T, size) the latents themselves, as
        mean + std * noise: their gradient is that of the means and stds. Zeros where no latents are."""
        if not set(wants) <= {"logprobs", "hidden"} or per_token:
            raise RewardlabError(f"an assistant gives logprobs and hidden, not {', '.join(wants)}")
        rows = [t for t, _ in batch.rows]
        written = [next((i for i, turn in enumerate(t.turns) if turn.author == self.name), None) for t in rows]
        have = [i for i, at in enumerate(written) if at is not None]
        shape, size = batch.ids.shape[:2], self.model.log_std.shape[1]
        out = Outputs(torch.zeros(shape, device=self.device), hidden=torch.zeros(*shape, size, device=self.device))
        if not have:
            return out
        turns = [rows[i].turns[written[i]] for i in have]  # type: ignore[index]
        befores = [Trajectory(rows[i].problem, rows[i].turns[: written[i]]) for i in have]
        means, std = self._means(befores), self.model.log_std.exp()
        vectors = torch.from_numpy(np.stack([turn.vectors for turn in turns if turn.vectors is not None])).to(self.device)
        latents = self.model.latents_of(vectors)
        row = torch.tensor(have, device=self.device)[:, None].expand(-1, self.count)
        column = torch.tensor([len(t) for t in befores], device=self.device)[:, None] + torch.arange(self.count, device=self.device)
        noise = ((latents - means) / std).detach()
        out.logprobs = out.logprobs.index_put((row, column), self._logprobs(latents, means))
        out.hidden = out.hidden.index_put((row, column), means + std * noise)
        return out

    def activation_bytes(self, tokens: int) -> int:
        return 0
