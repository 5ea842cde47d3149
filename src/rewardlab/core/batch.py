"""The tensors of one update. Slicing a Batch slices everything in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError


@dataclass
class Events:
    """The rewards of one term, unweighted.

    reward (B, T); rewarded (B, T): True where a reward falls, be it 0; weight: the factor of the term in the sum.
    """

    reward: Tensor
    rewarded: Tensor
    weight: float = 1.0

    def __getitem__(self, index: Any) -> Events:
        return Events(self.reward[index], self.rewarded[index], self.weight)


@dataclass
class Outputs:
    """A model's outputs on a batch, with gradient. All (B, T) and aligned with `Batch.ids`: position t is about ids[:, t].

    value: the value of the text up to and including position t; the state in which decision t was made is at t - 1.
    values (B, T, k): the outputs of a value head that has one for each of k attributes, of which `value` is the weighted sum.
    extra: results of objectives' `per_token` functions, by name.  An output that no objective wants is None.
    """

    logprobs: Tensor = None  # type: ignore[assignment]
    entropy: Tensor = None  # type: ignore[assignment]
    value: Tensor = None  # type: ignore[assignment]
    hidden: Tensor = None  # type: ignore[assignment]
    values: Tensor = None  # type: ignore[assignment]
    extra: dict[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> dict[str, Tensor]:
        own = {k: getattr(self, k) for k in ("logprobs", "entropy", "value", "hidden", "values")}
        return {k: v for k, v in own.items() if v is not None} | {f"extra.{k}": v for k, v in self.extra.items()}

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> Outputs:
        own = {k: v for k, v in tensors.items() if not k.startswith("extra.")}
        return cls(**own, extra={k[6:]: v for k, v in tensors.items() if k.startswith("extra.")})  # 6 = len("extra.")


@dataclass
class Batch:
    """Rollouts of one step as tensors, (B, T) unless stated otherwise, right-padded, rows of a group side by side.

    ids (B, T, *shape); mask: True where the learning policy decided; length (B,); old: log-probs under the weights that sampled
    the ids (NaN for recorded text, unless a part needs them); reward: the sum of all rewards at their positions; rewarded: True
    where a reward falls, be it 0; terms: the same for each named term, unweighted; group (B,): 0 .. G-1, ascending; credit: the
    advantages that the credit chain returned; rows: (trajectory, score) pairs.
    Further columns (ref, value, weights, MODEL.OUTPUT) are in `columns`; those with a plain name can be read as attributes.
    """

    ids: Tensor
    mask: Tensor
    length: Tensor
    old: Tensor
    reward: Tensor
    rewarded: Tensor
    group: Tensor
    terms: dict[str, Events] = field(default_factory=dict)
    credit: Tensor = None  # type: ignore[assignment]
    rows: list[Any] = field(default_factory=list)
    columns: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getattr__(self, name: str) -> Tensor:
        # copy and pickle ask for attributes before __init__ has run; `self.columns` would then call this method for ever
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        # Python probes for special methods such as __deepcopy__ and expects an AttributeError
        if name.startswith("_"):
            raise AttributeError(name)
        raise RewardlabError(f"this batch has no column {name!r}; a part that reads it declares needs=({name!r},)")

    @property
    def groups(self) -> int:
        return int(self.group[-1]) + 1 if len(self) else 0  # groups are numbered in ascending order

    @property
    def first_rows(self) -> Tensor:
        """(G,) the first row of each group."""
        first = torch.ones_like(self.group, dtype=torch.bool)
        first[1:] = self.group[1:] != self.group[:-1]
        return first.nonzero().squeeze(-1)

    @property
    def width(self) -> int:
        return self.ids.shape[1]

    def __getitem__(self, rows: Tensor) -> Batch:
        """The rows at these indices, trimmed to the longest of them, groups renumbered."""
        rows = torch.as_tensor(rows)
        # before they are moved, since a GPU would have to be waited for
        chosen = [self.rows[i] for i in rows.tolist()] if self.rows else []
        rows = rows.to(self.ids.device)
        # padding beyond the longest row would only cost time in the model
        width = int(self.length[rows].max()) if len(rows) else 0

        def cut(x: Tensor) -> Tensor:
            # columns of one number per row, or of another second dimension, have no positions to trim
            return x[rows][:, :width] if x.dim() > 1 and x.shape[1] == self.width else x[rows]

        return Batch(
            ids=self.ids[rows][:, :width],
            mask=cut(self.mask),
            length=self.length[rows],
            old=cut(self.old),
            reward=cut(self.reward),
            rewarded=cut(self.rewarded),
            # 0 .. G-1 without gaps again: sums over groups use these numbers as indices
            group=torch.unique_consecutive(self.group[rows], return_inverse=True)[1],
            terms={k: Events(cut(e.reward), cut(e.rewarded), e.weight) for k, e in self.terms.items()},
            credit=None if self.credit is None else cut(self.credit),
            rows=chosen,
            columns={k: cut(v) for k, v in self.columns.items()},
        )
