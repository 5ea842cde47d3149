"""The functions that verl calls: a recipe's credit as an advantage estimator, its objective as a policy loss.

    register(recipe, name)      under this name in verl's registries, as `algorithm.adv_estimator` and `policy_loss.loss_mode`

verl sums the gradients of micro-batches and processes, and normalises by the whole minibatch (`agg_loss` with the config's
`global_batch_info`), so weights of tokens are verl's own modes and not computed here.
verl 0.9.1, verl/trainer/ppo/core_algos.py (register_adv_est, register_policy_loss, agg_loss), verl/workers/utils/losses.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.backends.verl.handed import Handed, HandedRun
from rewardlab.backends.verl.settings import NAME, credit_of, own_terms
from rewardlab.core import Outputs, Recipe
from rewardlab.errors import RewardlabError

ESTIMATOR, LOSS = "an advantage estimator", "a policy loss"


def advantages(recipe: Recipe, rewards: Tensor, response_mask: Tensor, index: np.ndarray, max_new: int = 0) -> Tensor:
    """(B, T) the recipe's credit, 0 outside of the mask.

    rewards (B, T): a reply's reward at its last token; NaN: no verdict, so that the reply has no reward event.  index (B,): the
    prompt of each row, in any order.  Raises NotHanded where the credit reads what verl does not hand over.
    """
    # parts count on rows of a group that lie side by side, and verl deals rows out by their length
    _, group = np.unique(index, return_inverse=True)
    order = torch.from_numpy(np.argsort(group, kind="stable"))
    batch = batch_of(rewards[order], response_mask[order].bool(), torch.from_numpy(group)[order])
    run = HandedRun(ESTIMATOR, max_new or rewards.shape[1])
    chain = credit_of(recipe)
    credit = batch.reward if chain is None else chain(batch.reward, batch, run)
    placed = torch.empty_like(credit)
    placed[order] = torch.where(batch.mask, credit, 0.0)
    return placed


def batch_of(rewards: Tensor, mask: Tensor, group: Tensor) -> Handed:
    """The columns of a batch that an advantage estimator of verl can know."""
    length = last_of(mask) + 1
    rewarded = torch.zeros_like(mask)
    rewarded[torch.arange(len(mask)), length - 1] = True
    # a reply without a token earns nothing; one without a verdict has no event
    rewarded &= mask & ~rewards.isnan().any(1, keepdim=True)
    return Handed(ESTIMATOR, mask=mask, length=length, reward=rewards.nan_to_num(0.0), rewarded=rewarded, group=group)


def last_of(mask: Tensor) -> Tensor:
    """(B,) the last position where the mask is true; 0 in a row without any."""
    return (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(1)


def policy_loss(
    recipe: Recipe, old_log_prob: Tensor, log_prob: Tensor, advantages: Tensor, response_mask: Tensor, loss_agg_mode: str,
    config: Any, rollout_is_weights: Tensor | None = None, max_new: int = 0,
) -> tuple[Tensor, dict[str, float]]:  # fmt: skip
    """The loss of a micro-batch and what its parts logged. KL and entropy terms are verl's own: the config asks for them.

    All tensors (B, T).  loss_agg_mode: verl's weights of tokens.  rollout_is_weights: verl's correction for replies that a
    sampler with other numerics wrote; it weighs tokens, so an objective over rows refuses it.
    """
    from verl.trainer.ppo.core_algos import agg_loss

    assert recipe.objective is not None
    mask = response_mask.bool()
    batch = Handed(LOSS, mask=mask, old=old_log_prob, credit=advantages, length=last_of(mask) + 1)
    run = HandedRun(LOSS, max_new or mask.shape[1])
    loss = log_prob.new_zeros(())
    for scale, leaf in own_terms(recipe.objective):
        value, mode = leaf(Outputs(logprobs=log_prob), batch, run), loss_agg_mode
        if leaf.unit == "row":
            # the row's loss at one of its tokens: the sum over its tokens is the loss, and verl averages the rows
            value, mode = torch.zeros_like(log_prob).scatter(1, last_of(mask)[:, None], value[:, None]), "seq-mean-token-sum"
        value = _corrected(torch.where(mask, value, 0.0), leaf, rollout_is_weights)
        loss = loss + scale * agg_loss(loss_mat=value, loss_mask=mask, loss_agg_mode=mode, **config.global_batch_info)
    return loss, run.metrics


def _corrected(value: Tensor, leaf: Any, weights: Tensor | None) -> Tensor:
    if weights is None:
        return value
    if leaf.unit != "token":
        raise RewardlabError(f"{leaf.name} has one loss for a reply: switch algorithm.rollout_correction off, which weighs tokens")
    return value * weights


def register(recipe: Recipe, name: str = NAME, max_new: int = 0) -> None:
    """Register the recipe's credit and objective in verl, in this process. A second time replaces the first.

    A credit that needs a critic's values is left to verl's own `gae`, the one estimator that is handed them.
    """
    from verl.trainer.ppo import core_algos

    def estimator(token_level_rewards: Tensor, response_mask: Tensor, index: Any = None, **_: Any) -> tuple[Tensor, Tensor]:
        if index is None:
            raise RewardlabError("verl gave no uid for the rows: the recipe cannot tell which replies belong to one prompt")
        credit = advantages(recipe, token_level_rewards, response_mask, index, max_new)
        return credit, credit

    def loss(
        old_log_prob: Tensor, log_prob: Tensor, advantages: Tensor, response_mask: Tensor, loss_agg_mode: str = "token-mean",
        config: Any = None, rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, float]]:  # fmt: skip
        return policy_loss(
            recipe, old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, rollout_is_weights, max_new
        )  # fmt: skip

    # verl refuses a name that is taken, and its workers may import the exported module under two names
    core_algos.ADV_ESTIMATOR_REGISTRY.pop(name, None)
    core_algos.register_adv_est(name)(estimator)
    core_algos.register_policy_loss(name)(loss)
