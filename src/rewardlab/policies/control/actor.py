"""Policies that act on observations: small networks for discrete actions or continuous commands, and their critics.

Their trajectories hold float rows of one width D = max(observation, action), padded with zeros, as token ids: (T, D). Rows
that are read (observations) and rows that are decided (actions) alternate, or several are read one after another. A decision is
made from the row before it. A discrete action is its index, in the first entry of its row.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from rewardlab.core import Batch, Message, Outputs, Sampling, TokenCount, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.weights import HasWeights
from rewardlab.util.device import device_of

MODEL_TYPE = "rewardlab_actor"


@dataclass(frozen=True)
class Shape:
    """observation: its length.  action: the number of actions, or the length of a command if `discrete` is False."""

    observation: int
    action: int
    discrete: bool = True
    hidden: int = 64
    layers: int = 2
    critic: bool = False

    @property
    def width(self) -> int:
        """D, the length of a row of a trajectory."""
        return max(self.observation, 1 if self.discrete else self.action)

    @property
    def decided(self) -> int:
        """How many entries of a row an action takes."""
        return 1 if self.discrete else self.action


class Actor(HasWeights):
    """A policy over actions; with `critic`, a value model: V of an observation at its row, Q of observation and action at the
    action's row. So the value at a position covers what has happened up to and including it, as in every other policy.
    """

    context = 1 << 30  # a decision depends on one row: texts of any length fit
    step = 0

    def __init__(self, shape: Shape, device: torch.device | str = "cpu", name: str = "policy", seed: int = 0):
        self.shape, self.device, self.name, self.token_count = shape, torch.device(device), name, TokenCount()
        with torch.random.fork_rng(devices=[]):
            # nn.Linear initialises from the global generator: fork it, so that making a model changes no other stream
            torch.manual_seed(seed)
            self.model = (_Critic(shape) if shape.critic else _Policy(shape)).to(self.device)

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto") -> Actor:
        config = json.loads((Path(folder) / "config.json").read_text())
        actor = cls(Shape(**config["shape"]), device_of(device))
        actor.load_state(load_file(Path(folder) / "model.safetensors"))
        return actor

    def save(self, folder: Path | str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        config = {"model_type": MODEL_TYPE, "shape": asdict(self.shape)}
        (Path(folder) / "config.json").write_text(json.dumps(config, indent=2))
        save_file({k: v.cpu().contiguous() for k, v in self.state().items()}, Path(folder) / "model.safetensors")

    def copy(self, name: str, value_head: bool = False) -> Actor:
        """A model of its own with the same weights; with `value_head`, a critic for the same task, which starts at 0 everywhere."""
        if value_head and not self.shape.critic:
            return Actor(replace(self.shape, critic=True), self.device, name)
        copied = copy.copy(self)
        copied.name, copied.token_count, copied.model = name, TokenCount(), copy.deepcopy(self.model)
        return copied

    def activation_bytes(self, tokens: int) -> int:
        return tokens * 4 * self.shape.layers * self.shape.hidden

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        """Every prompt fits: a decision depends on the row before it alone."""

    def pieces(self, ids: np.ndarray) -> list[str]:
        """Each row as short text, without the zeros it is padded with."""
        return [" ".join(f"{x:.3g}" for x in np.trim_zeros(row, "b")) + " | " for row in ids]

    # ---- trajectories ------------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append the observations in the messages' `data`. A message without data adds no row; it may still carry a reward."""
        return [t.plus(self._read(new)) for t, new in zip(trajectories, messages, strict=True)]

    def _read(self, new: Sequence[Message]) -> Turn:
        observations = [m.data for m in new if m.data is not None]
        rewards = [m.reward for m in new if m.reward is not None]
        text = "\n".join(m.text for m in new if m.text)
        return Turn(
            None,
            self._rows(observations, self.shape.observation, "observation"),
            text=text,
            reward=sum(rewards) if rewards else None,
        )

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[Any]) -> list[Trajectory]:
        """Append recorded actions, one each (a number, or a command), as decisions of this policy."""
        rows = [self._rows([a], self.shape.decided, "action") for a in replies]
        return [t.plus(Turn(self.name, r, text=self._say(r)), "end") for t, r in zip(trajectories, rows, strict=True)]

    def _rows(self, data: Sequence[Any], length: int, what: str) -> np.ndarray:
        rows = np.zeros((len(data), self.shape.width), np.float32)
        for row, x in zip(rows, data, strict=True):
            flat = np.ravel(x)
            if len(flat) != length:
                raise RewardlabError(f"the {what} has {len(flat)} numbers, not {length}: was this policy made for this task?")
            row[:length] = flat
        return rows

    def _say(self, row: np.ndarray) -> str:
        return " ".join(f"{x:.3g}" for x in row[0, : self.shape.decided])

    @torch.no_grad()
    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one action for each trajectory, given its last row. Temperature 0 takes the most likely."""
        if self.shape.critic:
            raise RewardlabError(f"the model {self.name!r} is a critic and cannot act")
        if not trajectories:
            return []
        last = [_last_row(t) for t in trajectories]
        policy = self.model(torch.from_numpy(np.stack(last)).to(self.device)[:, : self.shape.observation])
        actions = self._sample(policy, sampling.temperature, rng)
        rows = np.zeros((len(trajectories), 1, self.shape.width), np.float32)
        rows[:, 0, : self.shape.decided] = actions.view(len(rows), -1).cpu().numpy()
        raw = policy.log_prob(actions).cpu().numpy()
        # a greedy action has no log-prob under temperature 0; the policy's own is recorded instead
        tempered = _tempered(policy, sampling.temperature or 1.0).log_prob(actions).cpu().numpy()
        self.token_count.generated += len(trajectories)
        return [
            t.plus(Turn(self.name, r, raw[i : i + 1], tempered[i : i + 1], self._say(r), step=self.step), "end")
            for i, (t, r) in enumerate(zip(trajectories, rows, strict=True))
        ]

    def _sample(self, policy: Any, temperature: float, rng: torch.Generator) -> Tensor:
        if self.shape.discrete:
            if temperature == 0:
                return policy.logits.argmax(-1)
            # on the CPU, where `rng` lives: every device then samples the same actions
            probabilities = (policy.logits / temperature).softmax(-1).cpu()
            return torch.multinomial(probabilities, 1, generator=rng).squeeze(1).to(self.device)
        noise = torch.randn(policy.mean.shape, generator=rng).to(self.device)
        return policy.mean + temperature * policy.stddev * noise

    # ---- outputs -----------------------------------------------------------------------------------------------------

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every action, (len,); 0 at observations."""
        self.token_count.scored += sum(map(len, trajectories))
        with torch.no_grad():
            return [self._logprobs_of(t) for t in trajectories]

    def _logprobs_of(self, t: Trajectory) -> np.ndarray:
        ids, mask = torch.from_numpy(t.ids)[None].to(self.device), torch.from_numpy(t.mask)[None].to(self.device)
        return self._acting(ids, mask, ())["logprobs"][0].cpu().numpy()

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Of a policy: log-probs and entropies at decisions. Of a critic: V at observations, Q at decisions. With gradient."""
        self.token_count.scored += int(batch.length.sum())
        if self.shape.critic:
            return Outputs(value=self.model(self._seen(batch.ids), self._taken(batch.ids), batch.mask))
        if "value" in wants:
            raise RewardlabError(f"the model {self.name!r} is a policy and has no values; use a copy of it with a value head")
        outputs = self._acting(batch.ids, batch.mask, per_token)
        return Outputs(outputs.pop("logprobs"), outputs.pop("entropy"), extra=outputs)

    def _acting(self, ids: Tensor, mask: Tensor, per_token: Sequence[Any]) -> dict[str, Tensor]:
        decided = mask.clone()
        # row 0 has no row before it to decide from
        decided[:, 0] = False
        # roll by one: row t of `observed` is what row t was decided from
        observed, taken = self._seen(ids).roll(1, 1)[decided], self._taken(ids)[decided]
        policy = self.model(observed)
        outputs = {"logprobs": policy.log_prob(taken), "entropy": policy.entropy()}
        for f in per_token:
            if not self.shape.discrete:
                raise RewardlabError(f"{f.__name__} needs the probability of every action, but this task's commands are continuous")
            outputs |= f(policy.logits, taken)
        return {k: torch.zeros_like(decided, dtype=v.dtype).masked_scatter(decided, v) for k, v in outputs.items()}

    def _seen(self, ids: Tensor) -> Tensor:
        return ids[..., : self.shape.observation]

    def _taken(self, ids: Tensor) -> Tensor:
        return ids[..., 0].long() if self.shape.discrete else ids[..., : self.shape.action]


class _Policy(nn.Module):
    """Observation to a distribution over actions. Commands: a Gaussian around the network's tanh, with a learnt std per entry."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.net = _network(shape.observation, shape.action, shape, 0.01)  # nearly uniform at first
        self.log_std = None if shape.discrete else nn.Parameter(torch.full((shape.action,), -0.5))

    def forward(self, seen: Tensor) -> Any:
        out = self.net(seen)
        return Categorical(logits=out) if self.log_std is None else _gaussian(out.tanh(), self.log_std.exp().expand_as(out))


class _Critic(nn.Module):
    """V of an observation, and Q of an observation with an action."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.actions = shape.action if shape.discrete else 0
        self.v = _network(shape.observation, 1, shape, 0.0)
        self.q = _network(shape.observation + shape.action, 1, shape, 0.0)

    def forward(self, seen: Tensor, taken: Tensor, mask: Tensor) -> Tensor:
        """(B, T): Q where `mask`, else V."""
        commands = F.one_hot(taken[mask].clamp(0, self.actions - 1), self.actions).float() if self.actions else taken[mask]
        q = self.q(torch.cat((seen.roll(1, 1)[mask], commands), -1)).squeeze(-1)
        return self.v(seen).squeeze(-1).masked_scatter(mask, q)


def _network(inputs: int, outputs: int, shape: Shape, last: float) -> nn.Sequential:
    """Tanh layers; the weights of the last one are scaled by `last`, so that at first no action is preferred."""
    sizes = [inputs] + [shape.hidden] * shape.layers
    layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
    head = nn.Linear(sizes[-1], outputs)
    with torch.no_grad():
        head.weight.mul_(last)
        head.bias.zero_()
    return nn.Sequential(*layers, head)


def _gaussian(mean: Tensor, std: Tensor) -> Independent:
    return Independent(Normal(mean, std), 1)


def _tempered(policy: Any, temperature: float) -> Any:
    if isinstance(policy, Categorical):
        return Categorical(logits=policy.logits / temperature)
    return _gaussian(policy.mean, temperature * policy.stddev)


def _last_row(t: Trajectory) -> np.ndarray:
    for turn in reversed(t.turns):
        if len(turn.ids):
            return turn.ids[-1]
    raise RewardlabError(f"nothing was observed in {t.problem.question[:60]!r}: its environment must begin with an observation")
