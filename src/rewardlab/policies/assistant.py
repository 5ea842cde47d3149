"""A small network that reads a problem through a language model and writes latents before it: a policy of soft prompts.

    (mean_1 .. mean_m)(x) = std f(h(x));    z_t ~ N(mean_t, diag std_t^2);    vector_t = anchor + (scale * z_t) directions

h(x) (hidden,) is what the model passes on at the end of the prompt, without gradient, and f begins as 0. The vectors that the model
then reads before the prompt lie in the principal directions of its own token embeddings, in which a z of size 1 is as far as
tokens are from each other. The anchor is the embedding of a line break: z = 0 are line breaks before the prompt, which disturb a
reply less than vectors that are like no token, and less than vectors between the prompt and the reply.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewardlab.core import Batch, Outputs, TokenCount, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.text import TextPolicy
from rewardlab.policies.vectors import NO_TOKEN
from rewardlab.policies.weights import HasWeights
from rewardlab.util.device import moved
from rewardlab.util.outputs import forward_batch

KIND = "rewardlab_assistant"
"""The model type of its checkpoints."""
FILE = "model.safetensors"
ANCHOR = "\n"


class Network(nn.Module):
    """f, the stds, and the frozen map from latents to vectors.  embeddings: (V, hidden); anchor: (hidden,)."""

    anchor: Tensor
    scale: Tensor
    directions: Tensor

    def __init__(self, embeddings: Tensor, anchor: Tensor, count: int, size: int, width: int, std: float):
        super().__init__()
        hidden, most, generator = embeddings.shape[1], min(embeddings.shape), torch.Generator().manual_seed(0)
        if size > most:
            raise RewardlabError(f"latents of {size} numbers need as many directions, and the embeddings have {most}")
        self.into = nn.Parameter(torch.randn(width, hidden, generator=generator) * hidden**-0.5)
        self.unit = std
        # zeros: at first every problem has the same means, 0
        self.out = nn.Parameter(torch.zeros(count * size, width))
        self.bias = nn.Parameter(torch.zeros(count * size))
        self.log_std = nn.Parameter(torch.full((count, size), math.log(std)))
        centred = embeddings - embeddings.mean(0)
        # of the covariance, whose size is that of the model's width and not of its vocabulary; eigenvalues ascend
        spread, directions = torch.linalg.eigh((centred.T @ centred / len(embeddings)).double())
        self.register_buffer("anchor", anchor.clone())
        self.register_buffer("scale", spread.flip(0)[:size].clamp(min=0).sqrt().float())
        self.register_buffer("directions", directions.T.flip(0)[:size].float().contiguous())

    def forward(self, states: Tensor) -> Tensor:
        """(n, hidden) -> means (n, m, size)."""
        states = F.layer_norm(states, states.shape[1:])
        seen = torch.tanh(states @ self.into.T) * self.into.shape[0] ** -0.5
        return self.unit * (seen @ self.out.T + self.bias).view(-1, *self.log_std.shape)

    def project(self, latents: Tensor) -> Tensor:
        return self.anchor + (latents * self.scale) @ self.directions

    def latents_of(self, vectors: Tensor) -> Tensor:
        return (vectors - self.anchor) @ self.directions.T / self.scale


class Assistant(HasWeights):
    """Writes `count` vectors before a prompt that `reader`, which stays as it is, replies to.

    size: numbers of a latent.  width: of the network.  std: of latents at first; it learns with the rest unless `fixed_std`.
    """

    def __init__(
        self, reader: TextPolicy, count: int = 4, size: int = 16, width: int = 64, std: float = 1.0, fixed_std: bool = False,
        name: str = "assistant",
    ):  # fmt: skip
        self.made = {"count": count, "size": size, "width": width, "std": std, "fixed_std": fixed_std}
        self.reader, self.name, self.count, self.dtype = reader, name, count, torch.float32
        self.device, self.step, self.token_count = reader.device, 0, TokenCount()
        embeddings = reader.token_embeddings().detach().float().cpu()
        anchor = embeddings[reader.tokenizer(ANCHOR, add_special_tokens=False)["input_ids"][-1]]
        self.model = Network(embeddings, anchor, count, size, width, std).to(self.device)
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
        """The rows with latents before what was read. Without rng these are the means."""
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
            replace(t, turns=(Turn(self.name, ids, p, p, step=self.step, vectors=v), *t.turns))
            for t, v, p in zip(rows, vectors.cpu().numpy(), logprobs, strict=True)
        ]

    def _means(self, rows: Sequence[Trajectory]) -> Tensor:
        """(n, m, size) of rows that were only read; with gradient."""
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
        have = [i for i, t in enumerate(rows) if t.turns and t.turns[0].author == self.name]
        shape, size = batch.ids.shape[:2], self.model.log_std.shape[1]
        out = Outputs(torch.zeros(shape, device=self.device), hidden=torch.zeros(*shape, size, device=self.device))
        if not have:
            return out
        means, std = self._means([_asked(rows[i]) for i in have]), self.model.log_std.exp()
        vectors = np.stack([v for i in have if (v := rows[i].turns[0].vectors) is not None])
        latents = self.model.latents_of(moved(vectors, self.device))
        noise, at = ((latents - means) / std).detach(), moved(torch.tensor(have), self.device)
        logprobs, hidden = self._logprobs(latents, means), means + std * noise
        beyond = shape[1] - self.count
        out.logprobs = out.logprobs.index_copy(0, at, F.pad(logprobs, (0, beyond)))
        out.hidden = out.hidden.index_copy(0, at, F.pad(hidden, (0, 0, 0, beyond)))
        return out

    def activation_bytes(self, tokens: int) -> int:
        return 0


def _asked(row: Trajectory) -> Trajectory:
    """What was read before the reply."""
    read = takewhile(lambda turn: turn.author is None, row.turns[1:])
    return Trajectory(row.problem, tuple(read))
