"""Objectives of joint log-probs of two models: added logits, or one model's hidden states under the other's heads."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Objective, Outputs, Run, objective
from rewardlab.errors import RewardlabError


@objective(unit="token", wants=("hidden",), needs=("policy.hidden",), wraps="inner")
def joint(
    out: Outputs, batch: Batch, run: Run, *, inner: Objective, model: str, weight: float = 1.0, once: bool = False
) -> Tensor:  # fmt: skip
    """The token objective `inner` on the log-probs of softmax(policy's logits + weight * the model's logits).

    model: the learner whose outputs these are; the gradient is its alone.  once: it takes a single update on each batch, so that
    in low precision `old` is its own, of the rows that were sampled in this step (`engine/old_logprobs.py` says why).
    """
    decided = batch.mask[:, 1:]
    # the state one position before a token predicts it
    own, others = (x[:, :-1][decided] for x in (batch.columns["policy.hidden"], out.hidden))  # (n, d)
    logprobs = run.policy.joint_logprobs(own, [(weight, run.model(model), others)], batch.ids[:, 1:][decided])
    table = logprobs.new_zeros(decided.shape).masked_scatter(decided, logprobs)
    table = F.pad(table, (1, 0))
    if once and any(getattr(m, "dtype", torch.float32) != torch.float32 for m in (run.policy, run.model(model))):
        new = [{t.step for t in row.turns if t.author and len(t.ids)} == {run.step} for row, _ in batch.rows]
        fresh = batch.mask & torch.tensor(new, dtype=torch.bool, device=batch.mask.device)[:, None]
        # detached: with a gradient through `old` the ratio would have none
        batch = replace(batch, old=torch.where(fresh, table.detach(), batch.old))
    return inner(replace(out, logprobs=table), batch, run)


def joint_terms(of: Objective | None, model: str, weight: float, once: bool = False) -> Objective:
    """An objective with `joint` around each of its terms, which must be losses of tokens by their log-probs.  once: as there."""
    terms = list(of.terms()) if of else []
    if not terms or any(leaf.unit != "token" or leaf.wants != ("logprobs",) for _, leaf in terms):
        raise RewardlabError(
            f"logits are added under an objective of tokens by their log-probs, such as clipped_ratio, not under {of}"
        )
    made = [(scale, joint(inner=leaf, model=model, weight=weight, once=once)) for scale, leaf in terms]
    first, *others = [leaf if scale == 1 else scale * leaf for scale, leaf in made]
    return sum(others, start=first)


@objective(unit="group", wants=("hidden",), needs=("policy.hidden",), wraps="inner")
def by_head(out: Outputs, batch: Batch, run: Run, *, inner: Objective, heads: str = "heads") -> Tensor:
    """The pairwise objective `inner` on the log-probs of each row under the head that its problem names.

    heads: the learner that they are, which learns from the hidden states before the update; the gradient is the trunk's alone.
    """
    return inner(replace(out, logprobs=run.model(heads).logprobs(out.hidden, batch, frozen=True)), batch, run)
