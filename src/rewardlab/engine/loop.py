"""The training loop. It knows no method: it draws, scores and updates as the recipe says, and keeps the run's books."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardlab.core import Recipe, Run, Task
from rewardlab.runs.record import Line, Recorder, disk_errors
from rewardlab.util.progress import Bar

from . import checkpoint
from .distributed import first, gathered, shared
from .step import Ops, Settings, standard_loop, truth_of
from .update import after_update


def train(
    recipe: Recipe, run: Run, task: Task, settings: Settings, folder: Path, about: dict[str, Any], resume: bool = False,
    track: Line | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train until `run.over`; returns the summary, which is also written to the run folder.

    about: what the summary says first (method, model, task).  resume: go on from the newest checkpoint in `folder`.
    track: is told every line of metrics.
    """
    ops, recorder = Ops(recipe, run, task, settings), Recorder(folder, track)
    step_of = recipe.loop or standard_loop
    evaluations = _resume(ops, recorder) if resume else {}
    started = time.perf_counter()
    with Bar("training", run.steps, done=run.step, hidden=not first()) as bar, _interrupts() as interrupted:
        if not resume:
            evaluations = _begin(ops, recorder)
        while not run.over and not any(gathered(interrupted())):
            run.metrics, ops.seconds, begun = {}, {}, time.perf_counter()
            step_of(recipe, run, ops)
            run.step += 1
            run.memory["engine.tokens"] = run.tokens + sum(gathered(run.take_spent()))
            if due(run, settings.eval_every) and (found := evaluate(ops, recorder)):
                evaluations[run.step] = found
                run.metrics |= {f"eval/{k}": v for k, v in found.items()}
            record(ops, recorder, time.perf_counter() - begun)
            if due(run, settings.checkpoint_every) or interrupted():
                _checkpoint(ops, folder)
            bar.advance(_shown(run.metrics, evaluations))
    if not run.over:
        raise KeyboardInterrupt
    return finish(ops, recorder, evaluations, about | {"seconds": {"train": round(time.perf_counter() - started, 2)}})


def due(run: Run, every: int) -> bool:
    return run.over or (every > 0 and run.step % every == 0)


def evaluate(ops: Ops, recorder: Recorder) -> dict[str, float]:
    """Measure on held-out problems; the first number named decides which model is kept as the best."""
    found = shared(ops.evaluate)
    if found and first():
        recorder.keep_best(next(iter(found.values())), _main_model(ops))
    return found


def _main_model(ops: Ops) -> Any:
    """What the run is about: the policy, or, where the policy does not learn, the first learner."""
    return ops.run.policy if ops.recipe.objective is not None or not ops.recipe.also else ops.run.models[ops.recipe.also[0].name]


def record(ops: Ops, recorder: Recorder, seconds: float) -> None:
    run = ops.run
    if not first():
        return
    if ops.latest is not None:
        groups, scores, batch = ops.latest
        truth = truth_of(groups, scores, run) if scores else []
        run.take_spent()
        known = [v for row in truth for v in row if v is not None]
        if known:
            run.log("truth", sum(known) / len(known))
        run.log("length", float(batch.mask.sum() / len(batch)))
        if due(run, ops.settings.record_every) or run.step == 1:
            learns = ops.recipe.objective is not None
            after = after_update(run.policy, batch, ops.settings.micro_tokens) if learns else {}
            recorder.rollouts(run, groups, scores, batch, truth, after)
            run.take_spent()
    run.log("tokens", run.tokens)
    for phase, spent in (*ops.seconds.items(), ("step", seconds)):
        run.log(f"seconds/{phase}", spent)
    recorder.line(run.step, run.metrics)


def _checkpoint(ops: Ops, folder: Path) -> None:
    where = folder / "checkpoints"
    if not first():
        return
    with disk_errors(where):
        if ops.run.step == 0 and ops.run.reference is not None:
            checkpoint.save_reference(where, ops.run.reference)
        checkpoint.save(where, ops.run, ops.learnings, ops.position)


def _begin(ops: Ops, recorder: Recorder) -> dict[int, dict[str, float]]:
    """Measure and save what the run starts from. A run that was killed before its first checkpoint begins anew."""
    if first():
        recorder.rewind(-1)
    found = evaluate(ops, recorder)
    if first():
        recorder.line(0, {f"eval/{k}": v for k, v in found.items()})
    _checkpoint(ops, recorder.folder)
    return {0: found} if found else {}


def _resume(ops: Ops, recorder: Recorder) -> dict[int, dict[str, float]]:
    """Put everything back as it was at the last checkpoint; returns the evaluations made until then."""
    where = recorder.folder / "checkpoints"
    ops.position = checkpoint.load(where, ops.run, ops.learnings)
    if ops.run.reference is not None:
        checkpoint.load_reference(where, ops.run.reference)
    if not first():
        return {}
    evaluations = {}
    for line in recorder.rewind(ops.run.step):
        found = {k.removeprefix("eval/"): v for k, v in line.items() if k.startswith("eval/")}
        if found:
            evaluations[line["step"]] = found
    values = [next(iter(e.values())) for e in evaluations.values()]
    recorder.best = max(values, default=None)
    return evaluations


def _shown(metrics: dict[str, float], evaluations: dict[int, dict[str, float]]) -> str:
    latest = evaluations[max(evaluations)] if evaluations else {}
    held_out = [f"held-out {k} {v:.3f}" for k, v in list(latest.items())[:1]]
    return "  ".join([f"{k} {metrics[k]:.3f}" for k in ("reward",) if k in metrics] + held_out)


def finish(ops: Ops, recorder: Recorder, evaluations: dict[int, dict[str, float]], summary: dict[str, Any]) -> dict[str, Any]:
    from rewardlab.report.page import write_report

    summary |= {"steps": ops.run.step, "tokens": ops.run.tokens}
    if evaluations:
        begun, ended = evaluations[min(evaluations)], evaluations[max(evaluations)]
        summary |= {"before": _headline(begun), "after": _headline(ended), "best": _best(evaluations)}
    if not first():
        return summary
    recorder.model(_main_model(ops), "model")
    recorder.summary(summary)
    with disk_errors(recorder.folder / "report.html"):
        write_report(recorder.folder)
    return summary


def _headline(found: dict[str, float]) -> dict[str, Any]:
    name = next(iter(found))
    extra = {k: v for k, v in found.items() if k not in (name, "n", "ci95_low", "ci95_high")}
    return {
        name: found[name],
        "n": int(found.get("n", 0)),
        "ci95": [found.get("ci95_low"), found.get("ci95_high")],
        **extra,
    }


def _best(evaluations: dict[int, dict[str, float]]) -> dict[str, Any]:
    step = max(evaluations, key=lambda s: (next(iter(evaluations[s].values())), -s))
    return {"step": step, **_headline(evaluations[step])}


@contextmanager
def _interrupts() -> Iterator[Any]:
    """Ctrl-C lets the step end and be saved; a second one stops at once."""
    asked: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
