"""Training through TRL into a run folder like any other: config.json, metrics.jsonl, rollouts, best/, model/, report.html."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from rewardlab.core import Recipe, Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.engine.loop import due, evaluate, finish, record
from rewardlab.engine.step import Ops, Settings
from rewardlab.models.load import NAMES, checkpoint_of, load_policy
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.rewards.reward import Reward
from rewardlab.runs.record import Recorder
from rewardlab.util.files import write_json
from rewardlab.util.progress import Bar

from .refusals import not_text, refuse
from .training import make


def train(
    recipe: Recipe, model: str, task: Task, settings: Settings, folder: Path, about: dict[str, Any], *,
    verify: Reward | None = None, max_new: int | None = None, lora_rank: int | None = None, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """Train `recipe` through TRL; returns the summary, which is also written to the folder.

    about: what config.json and the summary record of the run.  fields: of GRPOConfig. TRL writes its own checkpoints to
    `folder`/trl if it is asked to (save_strategy); such a run cannot be resumed as one of the embedded engine.
    """
    with tempfile.TemporaryDirectory() as place:
        trainer = make(
            recipe, loaded(recipe, model, task, Path(place)), task, verify=verify, settings=settings, steps=settings.steps,
            seed=settings.seed, max_new=max_new or task.max_new, lora_rank=lora_rank, output_dir=str(folder / "trl"), **fields,
        )  # fmt: skip
    for printing in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printing)
    if is_rank_zero():
        write_json(folder / "config.json", about | {"engine": "trl", "grpo_config": fields})
    log = _Log(trainer.ops, Recorder(folder))
    trainer.add_callback(log)
    with log.bar:
        trainer.train()
    kept = ("method", "model", "task", "seed")
    summary = {k: about[k] for k in kept if k in about} | {"engine": "trl", "seconds": {"train": log.seconds()}}
    return finish(trainer.ops, log.recorder, log.evaluations, summary)


def loaded(recipe: Recipe, model: str, task: Task, place: Path) -> str | HFPolicy:
    """A checkpoint folder that transformers can read; a model of ours is written as one."""
    if model not in NAMES:
        return str(checkpoint_of(Path(model.removeprefix("hf:")), model))
    policy = load_policy(model, "cpu", "float32", task=task)
    if why := not_text(policy):
        raise refuse(recipe, why)
    policy.save(place)
    return HFPolicy.load(place, "cpu", "float32")


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
        """TRL logs once a step of ours, when that is closed, and once more at the end."""
        if not logs or "grad_norm" not in logs:
            return
        ops, run = self.ops, self.ops.run
        run.log("grad_norm", logs["grad_norm"])
        run.log("lr", logs["learning_rate"])
        ops.bill_tokens()
        if due(run, ops.settings.eval_every) and (metrics := evaluate(ops, self.recorder)):
            self.evaluations[run.step] = metrics
            run.metrics |= {f"eval/{k}": v for k, v in metrics.items()}
        record(ops, self.recorder, time.perf_counter() - self.since)
        self.since = time.perf_counter()
        self.bar.advance(f"reward {run.metrics.get('reward', 0.0):.3f}")

    def seconds(self) -> float:
        return round(time.perf_counter() - self.started, 2)
