"""The step of an exported policy, and the reason for its choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardlab.report.curves import read_metrics
from rewardlab.report.diagnosis import EXPLOITED, findings
from rewardlab.report.summary import summarise


def choice(run: Path, which: str) -> dict[str, Any]:
    """step, measure, value and start (the value before training) of a run's `best` or `model`, and a sentence `why`.

    `warning`: present if training never improved the measure, so that the best policy is the one that the run began from; and if
    the reward rose while the truth did not, since a measure by that reward would choose what exploits it.
    """
    found = _chosen(summarise(run), which)
    told = [f.text for f in findings(read_metrics(run)) if f.name in EXPLOITED]
    warnings = [*filter(None, [found.get("warning")]), *told]
    return found | ({"warning": " ".join(warnings)} if warnings else {})


def _chosen(row: dict[str, Any], which: str) -> dict[str, Any]:
    best, start, name = row["best"], row["start"], row["measure"]
    if which != "best" or best is None:
        measured = f"; {name} {row['after']['value']:.4g}" if row["after"] else ""
        reason = "" if best else ": the run measured nothing on held-out problems, so none is the best"
        return {"step": row["step"], "why": f"model/: the last, step {row['step']}{measured}{reason}"}
    step, value = best["step"], best["value"]
    found = {"step": step, "measure": name, "value": value, "start": start["value"]}
    if step > 0:
        return found | {"why": f"best/: step {step}, {name} {value:.4g} (start {start['value']:.4g})"}
    warning = f"the untrained model was best: step 0, {name} {value:.4g}; no later one was above it (--last: the last policy)"
    return found | {"why": f"best/: step 0, {name} {value:.4g}, before any training", "warning": warning}
