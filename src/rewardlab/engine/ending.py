"""What a run says of itself: on its bar, in warnings, and at its end, in the summary and on the report page."""

from __future__ import annotations

from typing import Any

from rewardlab.engine.distributed import is_rank_zero, on_rank_zero
from rewardlab.engine.learner import LearnerState
from rewardlab.engine.step import Ops
from rewardlab.report.curves import read_metrics
from rewardlab.report.divergence import watched
from rewardlab.report.finding import Curves, Finding
from rewardlab.report.judge_symptoms import of_judge
from rewardlab.report.page import write_report
from rewardlab.report.symptoms import at_the_end
from rewardlab.runs.metrics import best_step
from rewardlab.runs.record import Recorder
from rewardlab.util.files import disk_errors
from rewardlab.util.progress import console


def main_model(ops: Ops) -> Any:
    return main_learner(ops).model


def main_learner(ops: Ops) -> LearnerState:
    """What the run trains: the policy, or, where the policy does not learn, the first second learner."""
    return next((learner for learner in ops.learners.values() if learner.optimiser is not None), ops.policy)


def warn(evaluations: dict[int, dict[str, float]], hidden: bool) -> None:
    """Say what the newest evaluation shows of a judge that is watched, and the one before did not."""
    rows = [{"step": step} | {f"eval/{k}": v for k, v in of.items()} for step, of in sorted(evaluations.items())]
    before = {finding.name for finding in of_judge(Curves(rows[:-1]))}
    for finding in of_judge(Curves(rows)):
        if not hidden and finding.name not in before:
            _say(finding)


def _say(finding: Finding) -> None:
    console.print(f"warning: {finding.text} Try: {finding.remedy}.", highlight=False, soft_wrap=True, markup=False)


def shown(step: int, metrics: dict[str, float], evaluations: dict[int, dict[str, float]]) -> str:
    measured_at = max(evaluations, default=step)
    then = "" if measured_at == step else f" (step {measured_at})"
    held_out = [f"held-out {k} {v:.3f}{then}" for k, v in list(evaluations.get(measured_at, {}).items())[:1]]
    judge = {k.removeprefix("watched."): v for k, v in evaluations.get(measured_at, {}).items() if k.startswith("watched.")}
    seen = [f"the judge agrees {judge[k]:.2f}" for k in ("agreement_now", "agreement") if k in judge][:1]
    seen += [f"pays {judge['keys_paid']:.0f} empty replies"] if judge.get("keys_paid") else []
    # what learns from given replies has no reward, and perhaps no measure
    first = "reward" if "reward" in metrics else "loss"
    return "  ".join([f"{k} {metrics[k]:.3f}" for k in (first,) if k in metrics] + held_out + seen)


def finish(ops: Ops, recorder: Recorder, evaluations: dict[int, dict[str, float]], summary: dict[str, Any]) -> dict[str, Any]:
    """Write the last model, the summary, and the report page, in this order; returns the summary."""
    # optimiser steps: of two methods with the same tokens one may make many more
    summary |= {"steps": ops.run.step, "updates": main_learner(ops).updates, "tokens": ops.run.tokens}
    if evaluations:
        first, last = evaluations[min(evaluations)], evaluations[max(evaluations)]
        summary |= {"before": _headline(first), "after": _headline(last), "best": _best(evaluations)}
    on_rank_zero(lambda: recorder.model(main_model(ops), "model"))
    if not is_rank_zero():
        return summary
    # what a judge says of replies is no answer to the row, and its reward is the truth about it
    if truth := watched(read_metrics(recorder.folder), expected=not ops.recipe.rewords):
        summary |= {"truth": truth}
    recorder.summary(summary)
    for finding in at_the_end(Curves(read_metrics(recorder.folder))):
        _say(finding)
    with disk_errors(recorder.folder / "report.html"):
        write_report(recorder.folder)
    return summary


def _headline(metrics: dict[str, float]) -> dict[str, Any]:
    """An evaluation as the summary holds it: the leading metric, its sample size and interval, then all other metrics."""
    name = next(iter(metrics))
    extra = {k: v for k, v in metrics.items() if k not in (name, "n", "ci95_low", "ci95_high")}
    return {
        name: metrics[name],
        "n": int(metrics.get("n", 0)),
        "ci95": [metrics.get("ci95_low"), metrics.get("ci95_high")],
        **extra,
    }


def _best(evaluations: dict[int, dict[str, float]]) -> dict[str, Any]:
    step = best_step({step: leading(metrics) for step, metrics in evaluations.items()})
    return {} if step is None else {"step": step, **_headline(evaluations[step])}


def leading(metrics: dict[str, float]) -> float:
    """The measure of an evaluation that decides which policy is the best."""
    return next(iter(metrics.values()))
