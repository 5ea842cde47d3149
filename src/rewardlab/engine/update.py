"""From a batch to optimiser steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Objective, Outputs, Recipe, Run
from rewardlab.engine.collate import micro_batches, mini_batches, outputs_of
from rewardlab.engine.distributed import in_turns, shard, sum_gradients
from rewardlab.engine.learner import LearnerState, learning_rate
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.engine.old_logprobs import recompute_old, rows_to_recompute, use_trainer_old
from rewardlab.engine.rates import with_rate
from rewardlab.engine.stats import Stats, mean_of
from rewardlab.errors import NotFinite
from rewardlab.util.sharded import whole


def update(learner: LearnerState, batch: Batch, run: Run, micro_tokens: int) -> dict[str, float]:
    """All optimiser steps of one batch: `epochs` passes over its `minibatches`; returns means over them."""
    model, optimiser, metrics = learner.model, learner.optimiser, []
    # a loop may have put another recipe in the learner's place
    settings = with_rate(learner.recipe.update, model)
    assert optimiser is not None
    fresh = rows_to_recompute(learner, batch, run)
    if fresh is not None and settings.epochs * settings.minibatches > 1:
        # a second optimiser step sees changed weights, so `old` must be fixed before the first
        batch, fresh = recompute_old(learner, batch, fresh, micro_tokens), None
    rate = learning_rate(settings, run.progress, run.step)
    for group in optimiser.param_groups:
        group["lr"] = rate
    for _ in range(settings.epochs):
        for rows in mini_batches(batch, settings.minibatches, run.rng("minibatches")):
            mini = batch if len(rows) == len(batch) else batch[rows]
            optimiser.zero_grad(set_to_none=True)
            stats = backward(model, mini, learner.recipe, run, micro_tokens, fresh)
            # before clipping, which must see the norm of the whole gradient
            sum_gradients(model.parameters())
            norm = float(whole(torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)))
            # checked before the step: one NaN gradient would ruin all weights and the optimiser's moments
            if not math.isfinite(norm):
                raise NotFinite(f"the gradient of {learner.recipe.objective} is not finite at step {run.step + 1}; lower --lr")
            optimiser.step()
            learner.updates += 1
            metrics.append(stats | {"grad_norm": norm, "lr": rate})
    return mean_of(metrics)


def backward(
    model: Any, batch: Batch, recipe: Recipe, run: Run, micro_tokens: int, fresh: Tensor | None = None
) -> dict[str, float]:
    """Add the gradient of the batch's loss to `.grad` of the parameters. Cutting the batch otherwise does not change it.

    fresh: (B,) bool, rows whose `old` is taken from this forward pass (see `old_logprobs`).
    """
    objective = recipe.objective
    assert objective is not None
    weigh(batch, objective, recipe.weighting, run.max_new)
    if "batch" in objective.units:
        return _backward_whole(model, batch, recipe, run, micro_tokens, fresh)
    stats = Stats()
    with in_turns(learning=True):
        for rows in shard(micro_batches(batch, micro_tokens, "group" if "group" in objective.units else "row")):
            micro = batch[rows]
            out = model.evaluate(micro, objective.wants, objective.per_token)
            micro = _with_old(micro, out, None if fresh is None else fresh[rows], stats)
            losses = losses_of(objective, out, micro, run)
            check_losses(losses, objective, out, micro, run)
            # run per micro-batch, so that its activations are freed before the next forward pass
            sum(losses.values(), torch.zeros((), device=batch.ids.device)).backward()
            stats.add(losses, out, micro)
    return stats.all_reduced().means()


def _backward_whole(
    model: Any, batch: Batch, recipe: Recipe, run: Run, micro_tokens: int, fresh: Tensor | None
) -> dict[str, float]:
    """`backward` for an objective over all rows at once: dL/d(outputs) of the whole batch is sent through each micro-batch."""
    objective = recipe.objective
    assert objective is not None
    parts = micro_batches(batch, micro_tokens, "group" if "group" in objective.units else "row")
    upstream, stats = output_gradients(model, batch, parts, recipe, run, fresh)
    with in_turns(learning=True):
        for rows in shard(parts):
            out = model.evaluate(batch[rows], objective.wants, objective.per_token)
            tensors = {k: v for k, v in out.tensors().items() if k in upstream and v.requires_grad}
            # a micro-batch is trimmed to its longest row, and so are its gradients: (b, T') of (B, T)
            gradients = [upstream[k][rows][:, : v.shape[1]] for k, v in tensors.items()]
            torch.autograd.backward(list(tensors.values()), gradients)
    return stats.means()


def output_gradients(
    model: Any, batch: Batch, parts: list[Tensor], recipe: Recipe, run: Run, fresh: Tensor | None = None
) -> tuple[dict[str, Tensor], Stats]:
    """dL/d(outputs) by name, (B, T, ...), for the loss of the whole batch; the outputs come from a pass without gradient."""
    objective = recipe.objective
    assert objective is not None
    tables = outputs_of(model, batch, parts, objective.wants, objective.per_token)
    # the outputs become leaves: the objective is differentiated with respect to them, without the model's graph
    leaves = {k: v.requires_grad_() for k, v in tables.items()}
    out, stats = Outputs.of(leaves), Stats()
    batch = _with_old(batch, out, fresh, stats)
    losses = losses_of(objective, out, batch, run)
    check_losses(losses, objective, out, batch, run)
    loss = sum(losses.values(), torch.zeros((), device=batch.ids.device))
    # an objective may not use every output: its gradient is then None
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    stats.add(losses, out, batch)
    return {k: g for k, g in zip(leaves, gradients, strict=True) if g is not None}, stats


def _with_old(batch: Batch, out: Outputs, fresh: Tensor | None, stats: Stats) -> Batch:
    """The batch as the objective reads it: `old` of fresh rows is the trainer's; counts how far the sampler's was from it."""
    if fresh is None or out.logprobs is None:
        return batch
    stats.add_mismatch(sampler=batch.old, trainer=out.logprobs, where=batch.mask & fresh[:, None])
    return use_trainer_old(batch, out.logprobs, fresh)


def check_losses(losses: dict[str, Tensor], objective: Objective, out: Outputs, batch: Batch, run: Run) -> None:
    """Refuse a loss that is not finite, and name the rollout it comes from."""
    # looked at together: each look is a wait for a GPU
    finite = torch.isfinite(torch.stack(list(losses.values()))).tolist() if losses else []
    for name, fine in zip(losses, finite, strict=True):
        if not fine:
            tables = {"credit": batch.credit, **out.tensors(), **batch.columns, **_per_unit(name, objective, out, batch, run)}
            raise NotFinite(
                f"the loss term {name!r} is not finite at step {run.step + 1}{_first_not_finite(tables, batch)}; "
                "the policy was not updated"
            )


def _per_unit(name: str, objective: Objective, out: Outputs, batch: Batch, run: Run) -> dict[str, Tensor]:
    """The losses that a term sums, laid out (B, T) over the decisions or rows they belong to."""
    leaf = next(leaf for leaf in objective.leaves() if leaf.name == name)
    losses = leaf(out, batch, run).detach()
    if leaf.unit == "batch":
        return {}
    if leaf.unit == "group":
        losses = losses[batch.group]
    return {"loss": losses if leaf.unit == "token" else losses[:, None].expand(batch.mask.shape)}


def _first_not_finite(tables: Mapping[str, Tensor | None], batch: Batch) -> str:
    """Text that names the first table with a NaN or infinity at a decision, and the rollout it belongs to."""
    for name, table in tables.items():
        if table is None or table.shape[:2] != batch.mask.shape:
            continue
        # outputs with a third dimension (hidden states) are summed over it: a NaN anywhere shows in the sum
        bad = ~torch.isfinite(table.flatten(2).sum(-1) if table.dim() > 2 else table) & batch.mask
        if bool(bad.any()):
            row = int(bad.any(1).nonzero()[0])
            if not batch.rows:
                return f": {name} of row {row}"
            trajectory = batch.rows[row][0]
            return f": {name} of the rollout {trajectory.reply[:60]!r} of problem {trajectory.problem.question[:60]!r}"
    return ""
