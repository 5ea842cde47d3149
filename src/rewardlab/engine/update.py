"""From a batch to optimiser steps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Objective, Outputs, Recipe, Run, Update
from rewardlab.errors import NotFinite

from .collate import micro_batches, mini_batches, outputs_of
from .distributed import gathered, mine, sum_gradients, world
from .loss import losses_of, weigh


@dataclass
class Learning:
    """A model with its optimiser.

    updates: optimiser steps so far.  drawn_at: (training step, updates) when the model began to draw in the latest step it drew in.
    """

    model: Any
    optimiser: torch.optim.Optimizer
    updates: int = 0
    drawn_at: tuple[int, int] = (-1, -1)

    @classmethod
    def of(cls, model: Any, update: Update) -> Learning:
        return cls(model, new_optimiser(model, update))

    def draws(self, step: int) -> None:
        if self.drawn_at[0] != step:
            self.drawn_at = (step, self.updates)


def new_optimiser(model: Any, update: Update) -> torch.optim.Optimizer:
    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        trained, lr=update.lr, betas=(update.beta1, update.beta2), weight_decay=update.weight_decay, fused=True
    )


def learning_rate(update: Update, progress: float, step: int) -> float:
    """Linear warm-up over `warmup` training steps, then linear to `lr_end * lr`."""
    rise = min(1.0, (step + 1) / update.warmup) if update.warmup else 1.0
    return update.lr * rise * (1.0 + (update.lr_end - 1.0) * progress)


def update(learning: Learning, batch: Batch, recipe: Recipe, run: Run, micro_tokens: int) -> dict[str, float]:
    """All optimiser steps of one batch; returns means over them."""
    how, found = recipe.update, defaultdict(list)
    batch = with_own_old(learning, batch, recipe, run, micro_tokens)
    rate = learning_rate(how, run.progress, run.step)
    for group in learning.optimiser.param_groups:
        group["lr"] = rate
    for _ in range(how.epochs):
        for rows in mini_batches(batch, how.minibatches, run.rng("minibatches")):
            mini = batch if len(rows) == len(batch) else batch[rows]
            learning.optimiser.zero_grad(set_to_none=True)
            stats = backward(learning.model, mini, recipe, run, micro_tokens)
            sum_gradients(learning.model.parameters())
            norm = float(torch.nn.utils.clip_grad_norm_(learning.model.parameters(), how.clip_norm))
            if not math.isfinite(norm):
                raise NotFinite(f"the gradient of {recipe.objective} is not finite at step {run.step + 1}; lower --lr")
            learning.optimiser.step()
            learning.updates += 1
            for name, value in (stats | {"grad_norm": norm, "lr": rate}).items():
                found[name].append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}


JUST_WRITTEN = "engine.just_written"


def with_own_old(learning: Learning, batch: Batch, recipe: Recipe, run: Run, micro_tokens: int) -> Batch:
    """Where a model computes in a rounded format, `old` of what it has just written becomes what it says of it as it trains.

    Drawing and training take the same products in another order. In bfloat16 that moves log-probs by a tenth, and ratios that
    should be 1 would be clipped. One optimiser step finds `old` in its own forward pass; several take a pass beforehand.
    """
    rows = just_written(learning, batch, run)
    if "old" not in recipe.needs or not bool(rows.any()):
        return batch
    marked = replace(batch, columns=batch.columns | {JUST_WRITTEN: rows})
    if recipe.update.epochs * recipe.update.minibatches > 1:
        spent = learning.model.spent.scored
        said = outputs_of(learning.model, batch, micro_batches(batch, micro_tokens, "row"), ("logprobs",), ())
        # a budget must not depend on the number format
        learning.model.spent.scored = spent
        marked.old = torch.where(batch.mask & rows[:, None], said["logprobs"], batch.old)
        del marked.columns[JUST_WRITTEN]
    return marked


def just_written(learning: Learning, batch: Batch, run: Run) -> Tensor:
    """(B,): all decisions in the row were made by this model, with the weights it has now, in a format other than float32."""
    model, none = learning.model, torch.zeros(len(batch), dtype=torch.bool, device=batch.ids.device)
    if getattr(model, "dtype", torch.float32) == torch.float32 or learning.drawn_at != (run.step, learning.updates):
        return none
    steps = [{t.step for t in row.turns if t.author == model.name and len(t.ids)} for row, _ in batch.rows]
    return torch.tensor([found == {run.step} for found in steps], dtype=torch.bool, device=none.device) if steps else none


def backward(model: Any, batch: Batch, recipe: Recipe, run: Run, micro_tokens: int) -> dict[str, float]:
    """Add the gradient of the batch's loss to the parameters. How it is cut into micro-batches never matters."""
    objective = recipe.objective
    assert objective is not None
    weigh(batch, objective, recipe.weighting)
    whole = "batch" in objective.units
    unit = "group" if "group" in objective.units else "row"
    parts = micro_batches(batch, micro_tokens, unit)
    upstream, stats = whole_batch_gradient(model, batch, parts, recipe, run) if whole else ({}, Stats())
    for rows in mine(parts):
        micro = batch[rows]
        out = model.evaluate(micro, objective.wants, objective.per_token)
        if whole:
            tensors = {k: v for k, v in out.tensors().items() if k in upstream and v.requires_grad}
            grads = [upstream[k][rows][:, : v.shape[1]] for k, v in tensors.items()]
            torch.autograd.backward(list(tensors.values()), grads)
            continue
        stats.take_own_old(out, micro)
        losses = losses_of(objective, out, micro, run)
        check_losses(losses, objective, out, micro, run)
        sum(losses.values(), torch.zeros((), device=batch.ids.device)).backward()
        stats.add(losses, out, micro)
    return stats.of_all().means() if not whole else stats.means()


def whole_batch_gradient(
    model: Any, batch: Batch, parts: list[Tensor], recipe: Recipe, run: Run
) -> tuple[dict[str, Tensor], Stats]:
    """The gradient of the loss with respect to what the model says of every row, from a pass without gradient."""
    objective = recipe.objective
    assert objective is not None
    tables = outputs_of(model, batch, parts, objective.wants, objective.per_token)
    leaves = {k: v.requires_grad_() for k, v in tables.items()}
    out, stats = Outputs.of(leaves), Stats()
    stats.take_own_old(out, batch)
    losses = losses_of(objective, out, batch, run)
    check_losses(losses, objective, out, batch, run)
    total = sum(losses.values(), torch.zeros((), device=batch.ids.device))
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    stats.add(losses, out, batch)
    return {k: g for k, g in zip(leaves, grads, strict=True) if g is not None}, stats


def check_losses(losses: dict[str, Tensor], objective: Objective, out: Outputs, batch: Batch, run: Run) -> None:
    for name, loss in losses.items():
        if not bool(torch.isfinite(loss)):
            tables = {"credit": batch.credit, **out.tensors(), **batch.columns, **_per_unit(name, objective, out, batch, run)}
            raise NotFinite(
                f"the loss term {name!r} is not finite at step {run.step + 1}{_culprit(tables, batch)}; the policy was not updated"
            )


def _per_unit(name: str, objective: Objective, out: Outputs, batch: Batch, run: Run) -> dict[str, Tensor]:
    """The losses that make up a term, at the decisions, or in the rows, they are of."""
    leaf = next(leaf for leaf in objective.leaves() if leaf.name == name)
    value = leaf(out, batch, run).detach()
    if leaf.unit == "batch":
        return {}
    if leaf.unit == "group":
        value = value[batch.group]
    return {"loss": value if leaf.unit == "token" else value[:, None].expand(batch.mask.shape)}


def _culprit(tables: Mapping[str, Tensor | None], batch: Batch) -> str:
    """Which rollout carries the first number that is not finite."""
    for name, table in tables.items():
        if table is None or table.shape[:2] != batch.mask.shape:
            continue
        bad = ~torch.isfinite(table.flatten(2).sum(-1) if table.dim() > 2 else table) & batch.mask
        if bool(bad.any()):
            row = int(bad.any(1).nonzero()[0])
            if not batch.rows:
                return f": {name} of row {row}"
            trajectory = batch.rows[row][0]
            return f": {name} of the rollout {trajectory.reply[:60]!r} of problem {trajectory.problem.question[:60]!r}"
    return ""


class Stats:
    """Sums over micro-batches of what is worth watching."""

    def __init__(self) -> None:
        self.losses: dict[str, float] = defaultdict(float)
        self.sums: dict[str, float] = defaultdict(float)
        self.tokens = 0

    @torch.no_grad()
    def take_own_old(self, out: Outputs, batch: Batch) -> None:
        """In rows just written, `old` becomes what the model says; counts what is far from what it was drawn with."""
        if JUST_WRITTEN not in batch.columns or out.logprobs is None:
            return
        own = batch.mask & batch.columns[JUST_WRITTEN][:, None]
        far = (out.logprobs - batch.old).abs() > math.log(1.2)
        self.sums["drawn_far"] += float((far & own).sum())
        batch.old = torch.where(own, out.logprobs.detach(), batch.old)

    @torch.no_grad()
    def add(self, losses: dict[str, Tensor], out: Outputs, batch: Batch) -> None:
        for name, loss in losses.items():
            self.losses[name] += float(loss)
        mask = batch.mask
        self.tokens += int(mask.sum())
        if out.entropy is not None:
            self.sums["entropy"] += float(out.entropy[mask].sum())
        if out.logprobs is not None:
            new, old = out.logprobs[mask], batch.old[mask]
            if not bool(old.isnan().any()):
                self.sums["drift"] += float(_k3(old - new).sum())
                self.sums["ratio_far"] += float(((new - old).abs() > math.log(1.2)).sum())
            if "ref" in batch.columns:
                self.sums["kl"] += float(_k3(batch.ref[mask] - new).sum())

    def of_all(self) -> Stats:
        """The sums over all processes."""
        if world() == 1:
            return self
        merged = Stats()
        for losses, sums, tokens in gathered((dict(self.losses), dict(self.sums), self.tokens)):
            for name, value in losses.items():
                merged.losses[name] += value
            for name, value in sums.items():
                merged.sums[name] += value
            merged.tokens += tokens
        return merged

    def means(self) -> dict[str, float]:
        losses = {f"loss/{k}": v for k, v in self.losses.items()} if len(self.losses) > 1 else {}
        means = {k: v / max(1, self.tokens) for k, v in self.sums.items()}
        return {"loss": sum(self.losses.values())} | losses | means


def _k3(log_ratio: Tensor) -> Tensor:
    """Schulman's estimate of KL(new || other) from log(other / new)."""
    return log_ratio.exp() - log_ratio - 1


LOOKED_AT = 32
"""Rollouts of a recorded step whose log-probs and entropy are computed anew: all would take a third of a training step."""


@torch.no_grad()
def after_update(model: Any, batch: Batch, micro_tokens: int) -> dict[str, Tensor]:
    """logprobs and entropy (B, T) of the batch's first LOOKED_AT rows under the weights that its update left, NaN elsewhere."""
    looked_at = batch[torch.arange(min(LOOKED_AT, len(batch)))]
    tables: dict[str, Tensor] = {}
    for rows in micro_batches(looked_at, micro_tokens, "row"):
        for name, part in model.evaluate(looked_at[rows], ("logprobs", "entropy")).tensors().items():
            if name in ("logprobs", "entropy"):
                tables.setdefault(name, part.new_full(batch.mask.shape, math.nan))[rows, : part.shape[1]] = part
    return {name: table.masked_fill(~batch.mask, math.nan) for name, table in tables.items()}
