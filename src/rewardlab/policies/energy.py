"""An energy head on a reward model: how plausible a score is for a reply, and the score that climbs to a more plausible one.

    p(r | e) ~ exp f(e, r),    e the model's state at the end of the reply;    r* = ascent on f(e, .) from the model's own score

Scores are in standard deviations of the model's own, from their mean. Lochab and Zhang 2025, arXiv:2504.13134; sizes, steps and the
halving of them follow the released code (AnamikaLochab/EBRM, cce0b5f, score.py). There an own score beyond 2 deviations is replaced
by a random start; here by the nearest score that is not, so that a reply always gets the same one.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

FILE = "energy/model.safetensors"
"""In a reward model's folder, where it has such a head; apart, or it would be taken for some of the model's weights."""
WIDTHS, JOINT, DROPOUT = (16, 32, 64), (1024, 512), 0.5
FARTHEST = 2.0
"""Standard deviations from the mean beyond which the model's own score is no start."""


class Energy(nn.Module):
    """f(e, r). shift, scale: mean and standard deviation of the reward model's own scores.

    agreed: of pairs that it learnt from, whether the reward model agrees with them, as far as nobody has read and cleared it.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, hidden: int):
        super().__init__()
        # the same start whatever the run's seed, as of fresh adapters
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            sizes = (1, *WIDTHS)
            self.of_score = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
            self.first, self.second = nn.Linear(hidden + WIDTHS[-1], JOINT[0]), nn.Linear(JOINT[0], JOINT[1])
            self.last = nn.Linear(JOINT[1], 1)
        self.dropout = nn.Dropout(DROPOUT)
        self.agreed: list[Tensor] = []
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, states: Tensor, scores: Tensor) -> Tensor:
        """The energy of each standardised score, of their shape (..., n), each with its state of states (n, d).

        What the first joint layer makes of a state is computed once, however many scores go with it.
        """
        r = scores.reshape(-1, 1)
        for i, layer in enumerate(self.of_score):
            r = layer(r).tanh() if i + 1 == len(self.of_score) else self.dropout(layer(r).tanh())
        of_state, of_score = self.first.weight.split((states.shape[1], WIDTHS[-1]), 1)
        said = nn.functional.linear(states, of_state, self.first.bias)
        x = (nn.functional.linear(r, of_score).view(*scores.shape, -1) + said).tanh().flatten(0, -2)
        x = self.second(self.dropout(x)).tanh()
        return self.last(self.dropout(x)).view(scores.shape)

    def refined(self, states: Tensor, own: Tensor, steps: int = 50, rate: float = 0.5, decay: float = 0.1) -> Tensor:
        """(n,) the scores that the model's own (n,) climb to. A step that does not raise f is not taken; the next is shorter."""
        self.eval()
        # also where a caller has gradients off: the ascent is by the score's own
        with torch.inference_mode(False), torch.enable_grad():
            e = states.detach().clone().float()
            r = ((own.detach().clone().float() - self.shift) / self.scale).clamp(-FARTHEST, FARTHEST)
            length = torch.full_like(r, rate)
            for _ in range(steps):
                r.requires_grad_()
                before = self(e, r)
                (slope,) = torch.autograd.grad(before.sum(), r)
                tried = (r + length * slope).detach()
                with torch.no_grad():
                    better = self(e, tried) > before
                r, length = torch.where(better, tried, r.detach()), torch.where(better, length, length * decay)
            return (r * self.scale + self.shift).detach()

    def save(self, folder: Path | str) -> None:
        file = Path(folder) / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file({k: v.detach().cpu().contiguous() for k, v in self.state_dict().items()}, file)


def load_energy(folder: Path | str, device: torch.device) -> Energy | None:
    """The energy head in a reward model's folder; None where there is none."""
    if not (Path(folder) / FILE).is_file():
        return None
    state = load_file(Path(folder) / FILE)
    energy = Energy(state["first.weight"].shape[1] - WIDTHS[-1])
    energy.load_state_dict(state)
    return energy.to(device).eval()


class WithEnergy:
    """A reward model (a text policy with a value head) and its energy head; all that is not said here is the reward model's."""

    def __init__(self, scorer: Any):
        self.scorer = scorer
        # a policy keeps its scalar head beside its model, or in it
        head = getattr(scorer, "value_head", None)
        self.energy = Energy((scorer.model.value_head if head is None else head).shape[1]).to(scorer.device)

    def __getattr__(self, name: str) -> Any:
        # not for what `__init__` has yet to set, or a copy without it would ask for ever
        if name in ("scorer", "energy"):
            raise AttributeError(name)
        return getattr(self.scorer, name)

    @property
    def name(self) -> str:
        return self.scorer.name

    @name.setter
    def name(self, name: str) -> None:
        self.scorer.name = name

    def parameters(self) -> list[nn.Parameter]:
        return [*self.scorer.parameters(), *self.energy.parameters()]

    def state(self) -> dict[str, Tensor]:
        return {**self.scorer.state(), **{f"energy.{k}": v.detach() for k, v in self.energy.state_dict().items()}}

    def load_state(self, state: dict[str, Tensor]) -> None:
        own = {k.removeprefix("energy."): v for k, v in state.items() if k.startswith("energy.")}
        self.energy.load_state_dict(own)
        self.scorer.load_state({k: v for k, v in state.items() if not k.startswith("energy.")})

    def save(self, folder: Path | str) -> None:
        self.scorer.save(folder)
        self.energy.save(folder)
