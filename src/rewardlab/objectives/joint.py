"""Objectives of joint log-probs of two models: added logits, or one model's hidden states under the other's heads."""

from __future__ import annotations

from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Objective, Outputs, Run, objective
from rewardlab.errors import RewardlabError


@objective(unit="token", wants=("hidden",), needs=("policy.hidden",), wraps="inner")
def joint(out: Outputs, batch: Batch, run: Run, *, inner: Objective, model: str, weight: float = 1.0) -> Tensor:
    """The token objective `inner` on the log-probs of softmax(policy's logits + weight * the model's logits).

    model: the learner whose outputs these are; the gradient is its alone.
    """
    decided = batch.mask[:, 1:]
    # the state one position before a token predicts it
    own, others = (x[:, :-1][decided] for x in (batch.columns["policy.hidden"], out.hidden))  # (n, d)
    logprobs = run.policy.joint_logprobs(own, [(weight, run.model(model), others)], batch.ids[:, 1:][decided])
    table = logprobs.new_zeros(decided.shape).masked_scatter(decided, logprobs)
    return inner(replace(out, logprobs=F.pad(table, (1, 0))), batch, run)


def joint_terms(of: Objective | None, model: str, weight: float) -> Objective:
    """An objective with `joint` around each of its terms, which must be losses of tokens by their log-probs."""
    terms = list(of.terms()) if of else []
    if not terms or any(leaf.unit != "token" or leaf.wants != ("logprobs",) for _, leaf in terms):
        raise RewardlabError(
            f"logits are added under an objective of tokens by their log-probs, such as clipped_ratio, not under {of}"
        )
    made = [(scale, joint(inner=leaf, model=model, weight=weight)) for scale, leaf in terms]
    first, *others = [leaf if scale == 1 else scale * leaf for scale, leaf in made]
    return sum(others, start=first)


@objective(unit="group", wants=("hidden",), needs=("policy.hidden",), wraps="inner")
def by_head(out: Outputs, batch: Batch, run: Run, *, inner: Objective, heads: str = "heads") -> Tensor:
    """The pairwise objective `inner` on the log-probs of each row under the head that its problem names.

    heads: the learner that they are, which learns from the hidden states before the update; the gradient is the trunk's alone.
    """
    return inner(replace(out, logprobs=run.model(heads).logprobs(out.hidden, batch, frozen=True)), batch, run)
