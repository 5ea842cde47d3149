"""A recipe as a trainer of TRL.

Five methods of GRPOTrainer are overridden, and no other:

    __init__                         rows of the data set are positions in ours
    _generate_and_score_completions  a step of ours up to the update: rollout, reward, credit, for the groups of all ranks at once
    _compute_loss                    the recipe's objective on TRL's forward pass, under weights of the whole minibatch
    create_scheduler                 the recipe's learning rate, which changes with our steps, not with optimiser steps
    get_decay_parameter_names        weight decay is of all weights, as in the embedded engine; TRL's leaves out norms and biases
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from transformers import GenerationConfig, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rewardlab.backends.trl.policy import TRLPolicy
from rewardlab.backends.trl.refusals import cannot_carry, refuse, warn_no_refill
from rewardlab.backends.trl.settings import config_of
from rewardlab.core import Batch, Problem, Recipe, Run, Sampling, Task, uncounted
from rewardlab.engine import distributed
from rewardlab.engine.collate import micro_batches, mini_batches
from rewardlab.engine.distributed import all_gather, shard, world_size
from rewardlab.engine.learner import learning_rate
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.engine.stats import Stats, mean_of
from rewardlab.engine.step import Ops
from rewardlab.engine.update import check_losses, output_gradients
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import learner_model
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled


def make(
    recipe: Recipe, model: Any, problems: Task | Sequence[Problem], *, steps: int = 100, seed: int = 0, max_new: int = 128,
    verify: Reward | None = None, lora_rank: int | None = None, settings: RunConfig | None = None, **fields: Any,
) -> RecipeTrainer:  # fmt: skip
    """A trainer that runs `recipe` through TRL.

    model: a Hugging Face checkpoint folder, or an HFPolicy.  problems: a task, or problems to take round after round.
    verify: the verifier behind `correct()`.  fields: of GRPOConfig, such as per_device_train_batch_size, bf16, use_vllm,
    report_to; what the recipe decides cannot be set twice. lora_rank, steps, seed, max_new: as in `rewardlab train`.
    """
    if why := cannot_carry(recipe):
        raise refuse(recipe, why)
    task = problems if isinstance(problems, Task) else Task("problems", Shuffled(list(problems)), (), "exact_match")
    limit = settings.reward_timeout if settings else 0.0
    run = Run(None, steps=steps, seed=seed, max_new=max_new, reward_timeout=limit, verify=verify)
    config = config_of(recipe, run, **fields)
    run.policy = policy = policy_of(model, config, lora_rank)
    if any(need == "ref" or need.startswith("reference.") for need in recipe.needs):
        run.reference = policy.copy("reference")
    for learner in recipe.also:
        run.models[learner.name] = learner_model(learner, policy)
    return RecipeTrainer(Ops(recipe, run, task, settings or RunConfig(steps=steps, seed=seed)), config)


def policy_of(model: Any, config: GRPOConfig, lora_rank: int | None = None) -> TRLPolicy:
    """The model on this rank's device, computing in the format that TRL trains in."""
    if not isinstance(model, HFPolicy):
        model = HFPolicy.load(str(model).removeprefix("hf:"), "cpu", "float32", lora_rank=lora_rank)
    return TRLPolicy.of(model, config.device, torch.bfloat16 if config.bf16 else torch.float32)


NO_ROWS = torch.zeros(0, dtype=torch.long)


class RecipeTrainer(GRPOTrainer):
    """Trains `ops.run.policy` (a TRLPolicy) by `ops.recipe`. A step of ours is epochs x minibatches optimiser steps of TRL's."""

    def __init__(self, ops: Ops, config: GRPOConfig):
        refuse_sharding(ops.recipe, config)
        self.ops, self.config, self.policy = ops, config, ops.run.policy
        warn_no_refill(ops.recipe)
        # a step's problems are rows of TRL's data set, which is cut before training
        ops.refills = False
        self.plan: list[_Piece] = []
        self.idle = False
        sampling = ops.recipe.sampling_settings
        self.sampling = Sampling(
            ops.run.max_new, float(sampling.get("temperature", 1.0)), config.top_p, int(sampling.get("top_k", 0))
        )  # fmt: skip
        config.learning_rate = ops.recipe.update.rate
        # every token that ends a reply of ours must end TRL's; and what TRL leaves open, transformers takes from the checkpoint,
        # whose limits (min_p, no_repeat_ngram_size) would change what is sampled without changing the log-probs
        self.policy.model.generation_config = GenerationConfig(eos_token_id=sorted(self.policy.ends))
        n = ops.recipe.update.problems * ops.run.steps
        positions = Dataset.from_dict({"prompt": [""] * n, "position": list(range(ops.position, ops.position + n))})
        super().__init__(
            self.policy.whole, reward_funcs=rewards_are_ours, args=config, train_dataset=positions,
            processing_class=self.policy.tokenizer, callbacks=[_Steps(self)],
        )  # fmt: skip
        # accelerate has joined the processes
        distributed.leave_at_exit()
        self.policy.trainer = self

    def can_sample(self, sampling: Sampling) -> bool:
        """Whether TRL's generation has exactly these settings."""
        plain = sampling.stop_when is None and sampling.temperature > 0
        return plain and sampling == self.sampling

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        hyper, run = self.ops.recipe.update, self.ops.run

        def share(done: int) -> float:
            step = done // (hyper.epochs * hyper.minibatches)
            return learning_rate(hyper, min(1.0, step / run.steps), step) / hyper.lr if hyper.lr else 0.0

        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, share)  # type: ignore[arg-type]
        return self.lr_scheduler

    def get_decay_parameter_names(self, model: Any) -> list[str]:
        return [name for name, _ in model.named_parameters()]

    # ---- before the update -------------------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Tensor]:
        if not self.policy.whole.training:
            raise RewardlabError("a recipe measures itself on problems (ops.evaluate); TRL's evaluation would train on them")
        ops = self.ops
        ops.run.metrics, ops.seconds = {}, {}
        # TRL shards rows, the engine shards problems: every rank needs all of the step's problems
        positions = dict.fromkeys(i for rows in all_gather([row["position"] for row in inputs]) for i in rows)
        ops.position = max(positions) + 1
        groups = ops.rollout([ops.task.train[i] for i in positions])
        self.rollouts = (groups, ops.score(groups))
        self.plan = self._cut(ops.collate(*self.rollouts))
        # TRL hands out one entry a micro-batch; the plan knows its rows
        return {"step": torch.full((len(self.plan),), ops.run.step)}

    def _cut(self, batch: Batch) -> list[_Piece]:
        """Every micro-batch of this step, in order: epochs, their minibatches, and this rank's part of each.

        A step with fewer groups than minibatches, as a filter may leave it, takes fewer optimiser steps; TRL takes the others, too,
        and moves nothing in them.
        """
        run, update = self.ops.run, self.ops.recipe.update
        parts = self.config.gradient_accumulation_steps
        plan: list[_Piece] = []
        for _ in range(update.epochs):
            minis = mini_batches(batch, update.minibatches, run.rng("minibatches"))
            for rows in minis:
                # TRL needs the same number of pieces on every rank; rows of similar length share one, with little padding
                mini = _Mini(batch if len(rows) == len(batch) else batch[rows], parts * world_size())
                pieces = mini.batch.length.argsort(descending=True, stable=True).tensor_split(parts * world_size())
                plan += [_Piece(mini, part) for part in shard(list(pieces))]
            plan += [_Piece(_Mini(batch, parts, idle=True), NO_ROWS)] * (parts * (update.minibatches - len(minis)))
        return plan

    # ---- the update --------------------------------------------------------------------------------------------------

    def _compute_loss(self, model: Any, inputs: dict[str, Tensor]) -> Tensor:
        self.policy.wrapped = model
        piece = self.plan[self._step % len(self.plan)]
        self.idle = piece.mini.idle
        with self.ops.bill.sharded(), self.ops.as_sampled(self.ops.policy):
            # TRL averages the gradients of the ranks; ours are parts of one loss, to be summed
            return self._loss(piece.mini, piece.rows) * world_size()

    def _loss(self, mini: _Mini, rows: Tensor) -> Tensor:
        """This piece's share of the minibatch's loss."""
        recipe, run = self.ops.recipe, self.ops.run
        objective = recipe.objective
        assert objective is not None
        if not mini.idle:
            mini.prepare(self.policy, recipe, run, self.ops.settings.micro_tokens)
        if not len(rows):
            # no row is left for this rank, or for any, and it must still take part in summing gradients
            with uncounted(self.policy):
                # times 0: the backward pass runs through all weights and adds nothing
                return 0.0 * self.policy.evaluate(mini.batch[torch.tensor([0])]).logprobs.sum()
        micro = mini.batch[rows]
        out = self.policy.evaluate(micro, objective.wants, objective.per_token)
        if mini.upstream is None:
            losses = losses_of(objective, out, micro, run)
            check_losses(losses, objective, out, micro, run)
            mini.stats.add(losses, out, micro)
            return sum(losses.values(), torch.zeros((), device=micro.ids.device))
        products = [(mini.upstream[k][rows][:, : v.shape[1]] * v).sum() for k, v in out.tensors().items() if k in mini.upstream]
        surrogate = torch.stack(products).sum()
        # the surrogate has the gradient of the loss; the value that TRL logs is this piece's part of the loss
        return surrogate - surrogate.detach() + mini.total / mini.pieces

    # ---- after the update --------------------------------------------------------------------------------------------

    def close_step(self) -> None:
        """Update the second models and log the step's metrics."""
        run, (groups, scores) = self.ops.run, self.rollouts
        assert self.ops.step_data is not None
        for name, value in self._means().items():
            run.log(name, value)
        self.ops.learn_due(self.ops.step_data.batch, groups, scores)
        run.step += 1
        for name, value in run.metrics.items():
            self._metrics["train"][name].append(value)

    def _means(self) -> dict[str, float]:
        """The statistics of the update over all ranks, as means over optimiser steps."""
        minis = dict.fromkeys(piece.mini for piece in self.plan if not piece.mini.idle)
        # statistics of a whole minibatch are the same on every rank already
        return mean_of([(x.stats if x.upstream is not None else x.stats.all_reduced()).means() for x in minis])


@dataclass(eq=False)
class _Mini:
    """The rows of one optimiser step, of all ranks, cut into so many pieces.

    upstream: the gradient of the loss by the model's outputs on each row, for objectives that look across rows.  idle: there are no
    rows for it.
    """

    batch: Batch
    pieces: int
    idle: bool = False
    upstream: dict[str, Tensor] | None = None
    total: float = 0.0
    stats: Any = None

    def prepare(self, policy: TRLPolicy, recipe: Recipe, run: Run, micro_tokens: int) -> None:
        """Once, when the first piece is reached: the weights are then those of this optimiser step."""
        if self.stats is not None:
            return
        objective = recipe.objective
        assert objective is not None
        weigh(self.batch, objective, recipe.weighting, run.max_new)
        self.stats = Stats()
        if {"group", "batch"} & set(objective.units):
            parts = micro_batches(self.batch, micro_tokens, "row")
            self.upstream, self.stats = output_gradients(policy, self.batch, parts, recipe, run)
            self.total = self.stats.means()["loss"]


@dataclass(frozen=True, eq=False)
class _Piece:
    mini: _Mini
    rows: Tensor


class _Steps(TrainerCallback):
    """Closes our step when TRL has taken its last optimiser step on it, and keeps the optimiser still where that has no rows."""

    def __init__(self, trainer: RecipeTrainer):
        self.trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **rest: Any) -> None:
        if self.trainer.idle:
            # a gradient of zero would still move weights, by Adam's averages and by weight decay; without one they stay
            for weight in (weight for group in optimizer.param_groups for weight in group["params"]):
                weight.grad = None

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if self.trainer._step % len(self.trainer.plan) == 0:
            self.trainer.close_step()


def rewards_are_ours(**columns: Any) -> list[float | None]:
    """TRL wants a reward function; the recipe's own reward has run by the time it would be called."""
    raise RewardlabError("the recipe's reward is computed before TRL would ask for one")


def refuse_sharding(recipe: Recipe, config: GRPOConfig) -> None:
    if config.deepspeed or config.fsdp:
        raise refuse(recipe, "its parts read whole weights, and DeepSpeed or FSDP keep them in pieces; use plain data parallelism")
    if config.n_gpu > 1:
        raise refuse(recipe, "torch.nn.DataParallel would split its batches; start one process per GPU with torchrun")
