"""The training loop. It knows no method: it samples, scores and updates as the recipe says, and logs the run."""

from __future__ import annotations

import copy
import math
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from rewardlab.core import Recipe, Run, Task
from rewardlab.engine import checkpoint
from rewardlab.engine.distributed import all_gather, is_rank_zero, on_rank_zero, world_size
from rewardlab.engine.ending import finish, leading, main_model, shown, warn
from rewardlab.engine.overlong import SKIPPED, NothingFits, skip
from rewardlab.engine.recorded import due, record, record_rollouts
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import Stopped, TooLong
from rewardlab.report.curves import read_metrics
from rewardlab.runs.config import UNLIMITED, RunConfig
from rewardlab.runs.record import KEPT, Line, Recorder
from rewardlab.util.files import disk_errors
from rewardlab.util.lockstep import LOCKSTEP
from rewardlab.util.progress import Bar
from rewardlab.util.signals import Asked, stopping_later, stopping_now

OWED = "engine.owed"
"""The key of `run.memory`, in a checkpoint alone, with the metrics of a step that is still to be evaluated, on resuming."""


def train(
    recipe: Recipe, run: Run, task: Task, settings: RunConfig, folder: Path, about: dict[str, Any], resume: bool = False,
    track: Line | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train until `run.over`, then write model, summary and report; returns the summary.

    about: first entries of the summary (method, model, task).  resume: start from the newest checkpoint in `folder`.
    track: receives every line of metrics.
    """
    ops, recorder = Ops(recipe, run, task, settings), Recorder(folder, track)
    evaluations = _resume(ops, recorder) if resume else {}
    owed = run.memory.pop(OWED, None)
    started = time.perf_counter() - (_seconds_before(recorder, owed) if resume else 0.0)
    hidden, doing = not is_rank_zero(), "this step" if resume else "the first evaluation"
    # where the budget ends the run, the number of steps is unknown
    total, done = None if run.steps == UNLIMITED else run.steps, run.step - bool(owed)
    with Bar("training", total, done=done, hidden=hidden) as bar, stopping_later(doing, hidden, world_size() > 1) as asked:
        if not resume:
            evaluations, asked.doing = _begin(ops, recorder), "this step"
            warn(evaluations, hidden)
        stop = _agreed(asked)
        while (owed or not run.over) and not stop:
            since = _made_up(ops, owed) if owed else _take(ops, recorder)
            _measure(ops, recorder, evaluations, since, asked)
            owed, stop = None, _agreed(asked)
            # metrics first: a run killed between the two resumes from an earlier checkpoint and writes this line again
            _keep(ops, recorder, stop)
            bar.advance(shown(run.step, run.metrics, evaluations))
    if owed or not run.over:
        raise Stopped(stop)
    # only a run that is over gets a summary and a report; an interrupted one has its checkpoint
    return finish(ops, recorder, evaluations, about | {"seconds": {"train": round(time.perf_counter() - started, 2)}})


def _seconds_before(recorder: Recorder, owed: dict[str, Any] | None) -> float:
    """How long the steps took that a resumed run goes on from."""
    logged = math.fsum(line.get("seconds/step") or 0.0 for line in read_metrics(recorder.folder))
    return logged + (owed["elapsed"] if owed else 0.0)


def _take(ops: Ops, recorder: Recorder) -> float:
    """Take a step, and log its rollouts; returns when it began."""
    run, since = ops.run, time.perf_counter()
    run.metrics, ops.seconds = {}, {}
    _step(ops, recorder.folder)
    run.step += 1
    # after the step and before the evaluation, which counts towards no budget
    ops.bill.settle()
    # no checkpoint holds rollouts: nobody could log them who resumes after an evaluation that was cut short
    record_rollouts(ops, recorder)
    return since


def _made_up(ops: Ops, owed: dict[str, Any]) -> float:
    """Go back to the end of a step whose evaluation was cut short; returns when it would have begun if it had gone on."""
    ops.run.metrics, ops.seconds = owed["metrics"], owed["seconds"]
    return time.perf_counter() - owed["elapsed"]


def _measure(ops: Ops, recorder: Recorder, evaluations: dict[int, dict[str, float]], since: float, asked: Asked) -> None:
    """Evaluate after a step, where that is due, and write its line.

    An error, or a signal to stop, loses no step: the run is saved as it was before, with what it owes.
    """
    run = ops.run
    measures = due(run, ops.settings.eval_every)
    owed = {"metrics": dict(run.metrics), "seconds": dict(ops.seconds), "elapsed": time.perf_counter() - since}
    # a measure may remember something
    memory = copy.deepcopy(run.memory) if measures else run.memory
    try:
        if measures and (measured := evaluate(ops, recorder, asked)):
            evaluations[run.step] = measured
            run.metrics |= {f"eval/{k}": v for k, v in measured.items()}
            warn(evaluations, not is_rank_zero())
        record(ops, recorder, time.perf_counter() - since)
    except BaseException:
        _save_instead(ops, recorder.folder, memory | {OWED: owed})
        raise


def _save_instead(ops: Ops, folder: Path, memory: dict[str, Any]) -> None:
    """Save a run that an error ends, with this memory.

    Not where other processes hold parts of its weights, since the error may be in this one alone: then an older checkpoint must do.
    """
    where = folder / "checkpoints"
    saved = [path.name for path in checkpoint.checkpoints(where)[-1:]] == [checkpoint.name_of(ops.run.step)]
    if is_rank_zero() and not saved and not LOCKSTEP.needed:
        ops.run.memory = memory
        # the first error is the one to tell, also where a full disk or a broken device causes a second
        with suppress(Exception):
            _save(ops, where)


def _agreed(asked: Asked) -> int:
    """The signal that has asked any rank to stop, else 0.

    All ranks must leave the loop after the same step: one that went on alone would wait forever in a collective.
    """
    return max(all_gather(asked.number))


def evaluate(ops: Ops, recorder: Recorder, asked: Asked | None = None) -> dict[str, float]:
    """Measure on held-out problems; the first metric decides which model is kept as the best.

    asked: signals to stop, which end it where the run can make up for it, and where no other process waits for its numbers.
    """
    with stopping_now(asked) if asked is not None and world_size() == 1 else nullcontext():
        metrics = on_rank_zero(ops.evaluate)
    if metrics:
        on_rank_zero(lambda: recorder.keep_best(ops.run.step, leading(metrics), main_model(ops)))
    return metrics


def _keep(ops: Ops, recorder: Recorder, stop: int) -> None:
    """Write what is due after a step: a model that stays, and a checkpoint to resume from, which a run that stops needs too."""
    run, settings = ops.run, ops.settings
    if settings.save_every and run.step % settings.save_every == 0:
        on_rank_zero(lambda: recorder.model(main_model(ops), f"{KEPT}/{checkpoint.name_of(run.step)}"))
    if due(run, settings.checkpoint_every) or stop:
        _checkpoint(ops, recorder.folder)


def _checkpoint(ops: Ops, folder: Path) -> None:
    on_rank_zero(lambda: _save(ops, folder / "checkpoints"))


def _save(ops: Ops, where: Path) -> None:
    with disk_errors(where):
        # the reference seldom changes: it is written beside the checkpoint of step 0, and after a method has renewed it
        if ops.reference_is_new and ops.run.reference is not None:
            checkpoint.save_reference(where, ops.run.reference, ops.run.step)
            ops.reference_is_new = False
        checkpoint.save(where, ops.run, ops.learners, ops.position)


def _step(ops: Ops, folder: Path) -> None:
    """Take a training step. An error in it loses none of the steps before: the run is saved as it was when the last of them ended.

    Not where the step has changed weights already, which nothing brings back: then an older checkpoint must do.
    """
    run = ops.run
    position, memory, weights = ops.position, copy.deepcopy(run.memory), _version(ops)
    try:
        (ops.recipe.loop or standard_loop)(ops.recipe, run, ops)
        run.memory.pop(SKIPPED, None)
    except TooLong as error:
        # what one process cannot read, the others could: only what all of them know is left out together
        if world_size() > 1 and not isinstance(error, NothingFits):
            raise
        ops.step_data = None
        skip(run, error)
    except Exception:
        if _version(ops) == weights:
            ops.position = position
            _save_instead(ops, folder, memory)
        raise


def _version(ops: Ops) -> list[int]:
    """Numbers that change with the weights of any learner."""
    # PyTorch counts changes in place, except those of its fused optimisers
    changes = [p._version for learner in ops.learners.values() for p in learner.model.parameters()]
    return [*(learner.updates for learner in ops.learners.values()), *changes]


def _begin(ops: Ops, recorder: Recorder) -> dict[int, dict[str, float]]:
    """Measure and save what the run starts from. A run that was killed before its first checkpoint starts over."""
    if is_rank_zero():
        recorder.rewind(-1)
    metrics = evaluate(ops, recorder)
    if is_rank_zero():
        recorder.line(0, {f"eval/{k}": v for k, v in metrics.items()})
    _checkpoint(ops, recorder.folder)
    return {0: metrics} if metrics else {}


def _resume(ops: Ops, recorder: Recorder) -> dict[int, dict[str, float]]:
    """Restore the newest checkpoint; returns the evaluations up to its step."""
    where = recorder.folder / "checkpoints"
    ops.position = checkpoint.load(where, ops.run, ops.learners)
    if ops.run.reference is not None:
        checkpoint.load_reference(where, ops.run.reference, ops.run.step)
        ops.reference_is_new = False
    evaluations = _rewind(ops, recorder) if is_rank_zero() else {}
    on_rank_zero(lambda: recorder.restore_best(ops.run.step, main_model(ops)))
    return evaluations


def _rewind(ops: Ops, recorder: Recorder) -> dict[int, dict[str, float]]:
    """Delete what was written after the step of the checkpoint; returns the evaluations up to it."""
    checkpoint.drop_later_references(recorder.folder / "checkpoints", ops.run.step)
    evaluations = {}
    for line in recorder.rewind(ops.run.step, unmeasured=OWED in ops.run.memory):
        metrics = {k.removeprefix("eval/"): v for k, v in line.items() if k.startswith("eval/")}
        if metrics:
            evaluations[line["step"]] = metrics
    # otherwise the first evaluation after resuming would overwrite best/, however bad it is
    recorder.measured = {step: leading(metrics) for step, metrics in evaluations.items()}
    return evaluations
