"""Training through TRL into a run folder like any other: config.json, metrics.jsonl, rollouts, best/, model/, report.html."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from rewardlab.backends.trl.refusals import not_text, refuse
from rewardlab.backends.trl.settings import fields_of
from rewardlab.backends.trl.training import make
from rewardlab.core import Recipe, Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.engine.ending import finish
from rewardlab.engine.loop import evaluate
from rewardlab.engine.recorded import due, record, record_rollouts
from rewardlab.engine.step import Ops
from rewardlab.models.checkpoint import NAMES
from rewardlab.models.load import load_policy
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.runs.record import Recorder
from rewardlab.util.files import write_json
from rewardlab.util.progress import Bar


def train(
    recipe: Recipe, model: str | Any, task: Task, config: RunConfig, folder: Path, document: dict[str, Any], *,
    verify: Reward | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train `recipe` through TRL; returns the summary, which is also written to the folder.

    model: a name, or a policy of ours.  document: what config.json holds.  TRL writes its own checkpoints to `folder`/trl if
    config.engine_options ask for them (save_strategy); such a run cannot be resumed as one of the embedded engine.
    """
    config = config.settled()
    with tempfile.TemporaryDirectory() as place:
        trainer = make(
            recipe, loaded(recipe, model, task, Path(place), config), task, verify=verify, settings=config,
            steps=config.steps, seed=config.seed, max_new=config.max_new or task.max_new, lora_rank=config.lora_rank,
            output_dir=str(folder / "trl"), **fields_of(config),
        )  # fmt: skip
    for printing in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printing)
    if is_rank_zero():
        write_json(folder / "config.json", document | {"loaded_dtype": trainer.policy.loaded_dtype})
    log = _Log(trainer.ops, Recorder(folder))
    trainer.add_callback(log)
    with log.bar:
        trainer.train()
    about = {k: document[k] for k in ("method", "model", "task", "seed")}
    return finish(trainer.ops, log.recorder, log.evaluations, {**about, "engine": "trl", "seconds": {"train": log.seconds()}})


def loaded(recipe: Recipe, model: str | Any, task: Task, place: Path, config: RunConfig) -> str | HFPolicy:
    """A checkpoint folder that transformers can read, or a policy that holds a model of transformers, told of its chat template.

    A lean policy is written to `place` as such a checkpoint.
    """
    if not isinstance(model, str):
        policy = model
    elif model in NAMES:
        policy = load_policy(model, "cpu", "float32", task=task)
    else:
        policy = load_policy(f"hf:{model.removeprefix('hf:')}", "cpu", "float32", config.lora_rank)
    if why := not_text(policy):
        raise refuse(recipe, why)
    if config.chat_template_kwargs:
        policy.use_template_kwargs(config.chat_template_kwargs)
    if isinstance(policy, HFPolicy):
        return policy
    policy.save(place)
    return str(place)


class _Log(TrainerCallback):
    """Logs the run: writes metrics and rollouts after each step, and an evaluation before the first."""

    def __init__(self, ops: Ops, recorder: Recorder):
        self.ops, self.recorder, self.started = ops, recorder, time.perf_counter()
        self.bar = Bar("training through TRL", ops.run.steps, hidden=not is_rank_zero())
        if is_rank_zero():
            recorder.rewind(-1)
        metrics = evaluate(ops, recorder)
        if is_rank_zero():
            recorder.line(0, {f"eval/{k}": v for k, v in metrics.items()})
        self.evaluations = {0: metrics} if metrics else {}
        self.since = time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **rest: Any) -> None:
        """TRL logs once for each step of ours, at its end, and once more at the end of training."""
        if not logs or "grad_norm" not in logs:
            return
        ops, run = self.ops, self.ops.run
        ops.policy.updates = state.global_step
        run.log("grad_norm", logs["grad_norm"])
        run.log("lr", logs["learning_rate"])
        ops.bill.settle()
        record_rollouts(ops, self.recorder)
        if due(run, ops.settings.eval_every) and (metrics := evaluate(ops, self.recorder)):
            self.evaluations[run.step] = metrics
            run.metrics |= {f"eval/{k}": v for k, v in metrics.items()}
        record(ops, self.recorder, time.perf_counter() - self.since)
        self.since = time.perf_counter()
        self.bar.advance(f"reward {run.metrics.get('reward', 0.0):.3f}")

    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 2)
