"""One update by verl's own functions, on recorded replies: its KL, advantages and losses, with the recipe in its hooks.

What runs is verl 0.9.1's code: the composed configuration, `apply_kl_penalty` and `compute_advantage`
(verl/trainer/ppo/ray_trainer.py), `ppo_loss` and `value_loss` (verl/workers/utils/losses.py), in micro-batches of two rows that lie
in another order than ours. The model's outputs are ours: verl's own forward pass needs a GPU.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.backends.verl.hooks import register
from rewardlab.backends.verl.writing import configuration
from rewardlab.core import Batch, Group, Recipe, Run, Scores
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError

MICRO = 2


@dataclass(frozen=True)
class Sampled:
    """Replies as verl keeps them, (B, R) over the tokens of the replies.

    batch: the same rows as ours, for the models.  prompts (B,): tokens of each prompt.  mask (B, R).  tokens (B, R): the position
    in `batch` of each token of a reply.
    """

    batch: Batch
    prompts: Tensor
    mask: Tensor
    tokens: Tensor

    @classmethod
    def of(cls, groups: list[Group], scores: Scores, device: Any) -> Sampled:
        batch = collate(groups, scores, device)
        prompts, length = batch.mask.int().argmax(1), batch.mask.sum(1)
        if not torch.equal(prompts + length, batch.length):
            raise RewardlabError("verl's single turns are compared, and a reply here has text within it that was only read")
        places = torch.arange(int(length.max()), device=device)
        return cls(batch, prompts, places < length[:, None], (prompts[:, None] + places).clamp(max=batch.width - 1))

    def replies(self, x: Tensor, shift: int = 0) -> Tensor:
        """(B, R) of (B, T): what is at each token of a reply, or so many positions before it."""
        return torch.where(self.mask, x.gather(1, (self.tokens - shift).clamp(min=0)), 0.0)

    def back(self, x: Tensor) -> Tensor:
        """(B, T) of (B, R)."""
        return x.new_zeros(self.batch.mask.shape).scatter_add(1, self.tokens, torch.where(self.mask, x, 0.0))


def step(recipe: Recipe, run: Run, groups: list[Group], scores: Scores) -> tuple[Tensor, float]:
    """The advantages (B, T) and the loss of one step by verl; gradients are left in the weights of the run's models."""
    register(recipe)
    config = composed(recipe, run.max_new)
    sampled = Sampled.of(groups, scores, run.policy.device)
    order = torch.randperm(len(sampled.batch), generator=torch.Generator().manual_seed(0))
    data = advantages(recipe, run, config, sampled, scores, order)
    actor = as_dataclass(config.actor_rollout_ref.actor)
    loss = backward(run, sampled, data, order, "policy", actor)
    if "values" in data.batch:
        # the critic's loss is its own; verl's configuration of it holds a model, which is ours here
        backward(run, sampled, data, order, "critic", critic_config(config))
    found = torch.empty_like(data.batch["advantages"])
    found[order] = data.batch["advantages"]
    return sampled.back(found), loss


def composed(recipe: Recipe, max_new: int) -> Any:
    """verl's whole configuration, under that of the recipe, as its trainer would read it."""
    from hydra import compose, initialize_config_dir

    with tempfile.TemporaryDirectory() as folder:
        text = configuration(recipe, steps=1, max_new=max_new)
        # workers' environments are no part of what is compared
        (Path(folder) / "verl.yaml").write_text(text[: text.index("ray_kwargs:")], "utf-8")
        with initialize_config_dir(folder, version_base=None):
            return compose("verl")


def as_dataclass(config: Any) -> Any:
    from verl.utils.config import omega_conf_to_dataclass

    return omega_conf_to_dataclass(config)


def critic_config(config: Any) -> Any:
    from types import SimpleNamespace

    own = config.critic
    return SimpleNamespace(cliprange_value=own.cliprange_value, loss_agg_mode=own.loss_agg_mode, loss_scale_factor=None)


def advantages(recipe: Recipe, run: Run, config: Any, sampled: Sampled, scores: Scores, order: Tensor) -> Any:
    """verl's batch with advantages, its rows in `order`."""
    from tensordict import TensorDict
    from verl import DataProto
    from verl.trainer.ppo import ray_trainer
    from verl.trainer.ppo.core_algos import get_kl_controller

    names = np.array([f"prompt {g}" for g in sampled.batch.group.tolist()], dtype=object)
    columns = {name: x[order] for name, x in tables(recipe, run, sampled, scores).items()}
    data = DataProto(batch=TensorDict(columns, len(order)), non_tensor_batch={"uid": names[order.numpy()]})
    algorithm = config.algorithm
    if algorithm.use_kl_in_reward:
        ray_trainer.apply_kl_penalty(data, get_kl_controller(algorithm.kl_ctrl), algorithm.kl_penalty)
    else:
        data.batch["token_level_rewards"] = data.batch["token_level_scores"]
    return ray_trainer.compute_advantage(
        data, adv_estimator=algorithm.adv_estimator, gamma=algorithm.gamma, lam=algorithm.lam, config=algorithm
    )  # fmt: skip


@torch.no_grad()
def tables(recipe: Recipe, run: Run, sampled: Sampled, scores: Scores) -> dict[str, Tensor]:
    """verl's columns: mask, scores at the last token of each reply (NaN: no verdict), log-probs, values of the critic."""
    flat = [s for row in scores for s in row]
    if any(s.steps for s in flat):
        raise RewardlabError(f"the reward of {recipe.name} pays single steps, and verl keeps one number for a reply")
    rewards = torch.zeros(sampled.mask.shape)
    numbers = torch.tensor([torch.nan if s.total is None else s.total for s in flat])
    rewards[torch.arange(len(flat)), sampled.mask.sum(1) - 1] = numbers
    batch = sampled.batch
    found = {"response_mask": sampled.mask.long(), "token_level_scores": rewards, "old_log_probs": sampled.replies(batch.old)}
    if "ref" in recipe.needs:
        found["ref_log_prob"] = sampled.replies(run.reference.evaluate(batch, ("logprobs",)).logprobs)
    if "critic" in run.models:
        found["values"] = sampled.replies(run.models["critic"].evaluate(batch, ("value",)).value, shift=1)
    return found


def backward(run: Run, sampled: Sampled, data: Any, order: Tensor, model: str, config: Any) -> float:
    """verl's loss of every micro-batch, summed, and its gradient in the weights of the policy or the critic."""
    from verl.workers.utils.losses import ppo_loss, value_loss

    loss_of, policy = (ppo_loss, run.policy) if model == "policy" else (value_loss, run.models[model])
    wants = ("logprobs", "entropy") if model == "policy" and config.entropy_coeff else ("logprobs",)
    total = 0.0
    for rows in torch.arange(len(order)).split(MICRO):
        micro = sampled.batch[order[rows]]
        out = policy.evaluate(micro, wants if model == "policy" else ("value",))
        outputs = {"log_probs": out.logprobs, "entropy": out.entropy} if model == "policy" else {"values": out.value}
        # verl's models give at each token what is known of the next one; a value is of the text up to its token in both
        flat = {
            name: packed(x if name == "values" else x.roll(-1, 1), micro.length) for name, x in outputs.items() if x is not None
        }  # fmt: skip
        loss, _ = loss_of(config, flat, handed(sampled, data.batch, order[rows], rows))
        loss.backward()
        total += float(loss.detach())
    return total


def packed(x: Tensor, length: Tensor) -> Tensor:
    """The real positions of all rows, one after the other."""
    return torch.cat([row[:n] for row, n in zip(x, length.tolist(), strict=True)])


def handed(sampled: Sampled, columns: Any, ours: Tensor, theirs: Tensor) -> Any:
    """A micro-batch as verl's engine hands it to a loss. ours, theirs: its rows in our order and in verl's."""
    from verl.utils import tensordict_utils as tu

    prompts, mask = sampled.prompts[ours], sampled.mask[ours]
    real = torch.arange(int(prompts.max())) < prompts[:, None]
    data = columns[theirs].clone()
    data["prompts"], data["responses"] = real.long(), mask.long()
    data["attention_mask"] = torch.cat((real, mask), 1).long()
    whole = {"dp_size": 1, "batch_num_tokens": int(sampled.mask.sum()), "global_batch_size": len(sampled.mask)}
    tu.assign_non_tensor(data, **whole)
    return data
