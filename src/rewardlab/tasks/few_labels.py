"""Rows of numbers of which few have labels, classes or numbers: digits, by how far they are rotated, or rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.data.files import read
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.util.extras import require

HELD_OUT = 0.3  # of the labelled rows of a file


@dataclass(frozen=True)
class FewLabels:
    """Rows with labels, others whose labels are hidden or unknown (None), and held-out ones. Numbers are between 0 and 1.

    classes: how many; 0 for numbers.  unit: what 1 is in the data's own unit.  restore: a label as it is in the data.
    """

    labelled: tuple[Tensor, Tensor]
    unlabelled: tuple[Tensor, Tensor | None]
    test: tuple[Tensor, Tensor]
    classes: int
    unit: float = 1.0
    restore: Callable[[float], Any] = lambda y: y

    @property
    def outputs(self) -> int:
        return self.classes or 1

    def said(self, logits: Tensor) -> Tensor:
        """(B,) the label that the student states: a class, or a number."""
        return logits.argmax(-1) if self.classes else logits.squeeze(-1).clamp(0, 1)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """(B,)"""
        return F.cross_entropy(logits, y, reduction="none") if self.classes else (logits.squeeze(-1) - y).abs()

    def error(self, y: Tensor, true: Tensor) -> Tensor:
        """(B,) 1 where a class is wrong; how far a number is off, in the data's unit."""
        return (y != true).float() if self.classes else (y - true).abs() * self.unit


def digits(goal: str, labels: int, rng: np.random.Generator) -> FewLabels:
    """The digits of scikit-learn: which digit it is, as many labels of each as can be; or by how far it is rotated, -60 to 60
    degrees. A quarter is held out."""
    require("digits", "sklearn", what="this data")
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    x, y = torch.from_numpy(images[order]).float() / 16, torch.from_numpy(y[order]).long()
    test = len(x) // 4
    if goal == "class":
        rest = [test + int(i) for k in range(10) for i in np.flatnonzero(y[test:].numpy() == k)[: max(1, labels // 10)]]
    else:
        turns = torch.from_numpy(rng.random(len(x))).float()
        x, y, rest = rotated(x, (turns - 0.5) * 2 * np.pi / 3), turns, list(range(test, test + labels))
    others = sorted(set(range(test, len(x))) - set(rest))
    return FewLabels((x[rest], y[rest]), (x[others], y[others]), (x[:test], y[:test]), 10 if goal == "class" else 0, unit=120.0)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """(n, 64) images of 8 by 8 rotated by these angles (n,), in radians."""
    cos, sin, zero = angles.cos(), angles.sin(), torch.zeros_like(angles)
    turn = torch.stack((cos, -sin, zero, sin, cos, zero), 1).view(-1, 2, 3)
    images = x.view(-1, 1, 8, 8)
    grid = F.affine_grid(turn, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False).flatten(1)


def from_file(file: str, label: str, goal: str, rng: np.random.Generator) -> FewLabels:
    """Rows of numbers, those without a label unlabelled; 30% of the others are held out. Inputs are standardised."""
    rows = [entry.row for entry in read(file) if entry.row is not None]
    names = [name for name in (rows[0] if rows else {}) if name != label and all(number_of(r.get(name)) is not None for r in rows)]
    known = [i for i, row in enumerate(rows) if row.get(label) not in (None, "")]
    if not names or len(known) < 4 or len(known) == len(rows):
        raise RewardlabError(
            f"{file}: few labels are learnt from columns of numbers, here {names or 'none'}, with the column {label!r} filled in "
            f"for some rows and empty for others, here filled in for {len(known)} of {len(rows)}"
        )
    x = torch.tensor([[number_of(row[name]) for name in names] for row in rows], dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)
    order = [known[int(i)] for i in rng.permutation(len(known))]
    held = max(1, round(HELD_OUT * len(order)))
    others = sorted(set(range(len(rows))) - set(known))
    y, classes, unit, restore = _targets([rows[i][label] for i in order], goal, file)
    return FewLabels((x[order[held:]], y[held:]), (x[others], None), (x[order[:held]], y[:held]), classes, unit, restore)


def _targets(values: Sequence[Any], goal: str, file: str) -> tuple[Tensor, int, float, Callable[[float], Any]]:
    if goal == "class":
        names = sorted({str(value) for value in values})
        return torch.tensor([names.index(str(value)) for value in values]), len(names), 1.0, lambda y: names[int(y)]
    numbers = [number_of(value) for value in values]
    if any(x is None for x in numbers):
        raise RewardlabError(f"{file}: with goal=number every label is a number or empty")
    low, high = min(numbers), max(numbers)  # type: ignore[type-var]
    span = float(high - low) or 1.0  # type: ignore[operator]
    return (torch.tensor(numbers, dtype=torch.float32) - low) / span, 0, span, lambda y: low + span * y  # type: ignore[operator]
