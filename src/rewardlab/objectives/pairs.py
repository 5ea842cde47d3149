"""Objectives on pairs: a group of two rows, the preferred one first."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Credit, Objective, Outputs, Run, objective
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, Share


def margin(row_values: Tensor, batch: Batch) -> Tensor:
    """(G,) the preferred row's number minus the dispreferred row's, from one number per row (B,)."""
    # rows of a group are adjacent, so even rows are preferred; an odd group anywhere would shift all after it
    if len(batch) != 2 * batch.groups or not torch.equal(batch.group[::2], batch.group[1::2]):
        raise RewardlabError("a pairwise objective needs groups of two rows, the preferred one first")
    return row_values[::2] - row_values[1::2]


def row_sum(x: Tensor, batch: Batch) -> Tensor:
    """(B,) sum over decided positions."""
    # where, not a product: an infinity or NaN off the mask times 0 is NaN
    return torch.where(batch.mask, x, 0.0).sum(1)


def last_value(out: Outputs, batch: Batch) -> Tensor:
    """(B,) the value head's output at the last position of each row."""
    return out.value.gather(1, (batch.length - 1)[:, None]).squeeze(1)


@objective(unit="group", needs=("ref",))
def dpo_loss(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.1) -> Tensor:
    """-log sigmoid(beta (log pi/ref of the preferred - log pi/ref of the other)), replies summed over tokens.

    Rafailov et al. 2023, arXiv:2305.18290
    """
    # logsigmoid stays finite where log(sigmoid(x)) would be log(0)
    return -F.logsigmoid(beta * margin(row_sum(out.logprobs - batch.ref, batch), batch))


@objective(unit="group", needs=("ref",))
def soft_dpo_loss(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.1, label: Share | None = None) -> Tensor:
    """DPO with a soft label p: p dpo_loss(preferred, other) + (1 - p) dpo_loss(other, preferred).

    label: p; None: the credit of the pair, which is the same at all decisions of its first row. At p = 1/2 nothing is preferred,
    and replies stay as likely as they are.
    """
    gap = beta * margin(row_sum(out.logprobs - batch.ref, batch), batch)
    sure = (row_sum(batch.credit, batch) / batch.mask.sum(1).clamp(min=1))[::2] if label is None else label
    return -sure * F.logsigmoid(gap) - (1 - sure) * F.logsigmoid(-gap)


@objective(unit="group", needs=("policy.logprobs",))
def group_preferences(out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.05) -> Tensor:
    """The mean of -log sigmoid(beta [log m/old of the better row - log m/old of the other]) over a group's pairs with different
    rewards.

    m: the model that learns; old: the policy before the update, so that no other is needed as a reference. A group without such a
    pair, and rows without a verdict, teach nothing.  Liu et al. 2025, arXiv:2509.19199
    """
    said = beta * row_sum(out.logprobs - batch.columns["policy.logprobs"], batch)
    earned, judged = row_sum(batch.reward, batch), batch.rewarded.any(1)
    pairs = (batch.group[:, None] == batch.group) & judged[:, None] & judged & (earned[:, None] > earned)  # (B, B): first is better
    losses = torch.where(pairs, -F.logsigmoid(said[:, None] - said), 0.0)
    zeros = losses.new_zeros(batch.groups)
    total, count = (zeros.index_add(0, batch.group, x.sum(1)) for x in (losses, pairs.to(losses)))
    return total / count.clamp(min=1)


@objective(unit="group", wants=("value",))
def preference_loss(
    out: Outputs, batch: Batch, run: Run, *, labels: Literal["order", "margins", "votes"] = "order", center: NonNegativeFloat = 0.0
) -> Tensor:
    """-log sigmoid(r(preferred) - r(other)): the Bradley-Terry likelihood of the preference.

    labels: what the rewards s of the two rows say. "order": nothing.  "margins": how much better the preferred one is, and r is to
    tell them apart by that much more: -log sigmoid(r - r' - (s - s')), Touvron et al. 2023, arXiv:2307.09288.  "votes": how many
    people preferred each, so that p = s / (s + s') is the chance of the preference, and 1/2 a tie: -p log sigmoid(r - r')
    - (1 - p) log sigmoid(r' - r).  A pair without a reward for both rows teaches nothing by these two.  center: weight of
    (r + r')^2, which keeps scores around 0, Eisenstein et al. 2023, arXiv:2312.09244.
    """
    scores = last_value(out, batch)
    gap = margin(scores, batch)
    if labels == "votes":
        votes = row_sum(batch.reward, batch)
        cast = votes[::2] + votes[1::2]
        sure = torch.where(cast > 0, votes[::2] / cast.clamp(min=1e-9), 0.5)
        loss = -sure * F.logsigmoid(gap) - (1 - sure) * F.logsigmoid(-gap)
    else:
        wanted = margin(row_sum(batch.reward, batch), batch) if labels == "margins" else 0.0
        loss = -F.logsigmoid(gap - wanted)
    if labels != "order":
        # a missing reward stands as 0 in the table: it would turn the label of its pair round
        known = batch.rewarded.any(1)
        loss = torch.where(known[::2] & known[1::2], loss, 0.0)
    return loss + center * (scores[::2] + scores[1::2]).square() if center else loss


@objective(unit="group", wraps="inner")
def credit_weighted(out: Outputs, batch: Batch, run: Run, *, inner: Objective) -> Tensor:
    """The pairwise objective `inner` on the log-probs of policy and reference, multiplied by the credit of each position.

    So credit 1 everywhere is `inner` itself, and a reply whose credit is 0 counts as one that the policy says as the reference
    does.
    """
    weighted = {"ref": batch.ref * batch.credit} if "ref" in batch.columns else {}
    seen = replace(batch, columns=batch.columns | weighted)
    return inner(replace(out, logprobs=out.logprobs * batch.credit), seen, run)


def weigh_by_credit(of: Objective | None, credit: Credit | None, method: str) -> Objective:
    """An objective with `credit_weighted` around each of its terms that compares pairs by their log-probs; other terms stay.

    credit: what the method that brings `of` does with credit, which must be nothing.  method: who asks, for the error.
    """
    if credit is not None:
        raise RewardlabError(f"{method} gives the tokens of pairs their weights by credit, and here credit is {credit} already")
    terms = [(scale, leaf, leaf.unit == "group" and leaf.wants == ("logprobs",)) for scale, leaf in of.terms()] if of else []
    if not any(pairs for *_, pairs in terms):
        raise RewardlabError(f"{method} weighs an objective on pairs of replies, such as dpo_loss, and this one is {of}")
    weighed = [(scale, credit_weighted(inner=leaf) if pairs else leaf) for scale, leaf, pairs in terms]
    first, *others = [leaf if scale == 1 else scale * leaf for scale, leaf in weighed]
    return sum(others, start=first)
