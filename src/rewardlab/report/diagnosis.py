"""Diagnosis of a run, with the number and a remedy, from its log alone: ours, TRL's or verl's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rewardlab.report import curves
from rewardlab.report.divergence import SHORTEST, apart, gamed
from rewardlab.report.finding import Curves, Finding
from rewardlab.report.symptoms import LEAST, SYMPTOMS, dead_terms
from rewardlab.runs.foreign import read_log
from rewardlab.runs.metrics import best_step

Row = dict[str, Any]
EXPLOITED = ("reward hacking", "gamed term")
"""The names of findings of a reward, or a term of it, that parts from the truth."""
HELD_OUT, TRUTH = "held-out measure", "reward against truth"


def diagnose(path: Path | str) -> Row:
    """What goes wrong in a run: `{"source", "steps", "findings", "checked", "not_checked", "too_short"}`.

    path: the folder of a run of ours; of TRL, its output folder or trainer_state.json; of verl, the JSONL of its file logger.
    findings: [{"name", "text", "remedy"}], the worst first.  checked, not_checked: what was looked at, and what could not be since
    the log lacks these numbers; too_short: or has fewer steps of them than this.  Raises RewardlabError where there is no log.
    """
    path = Path(path)
    ours = path.is_dir() and (path / "config.json").is_file() and not (path / "trainer_state.json").is_file()
    source, rows = ("rewardlab", curves.read_metrics(path)) if ours else read_log(path)
    found = Curves(rows)
    needs = {what: names for what, (names, _) in SYMPTOMS.items()}
    needs |= {TRUTH: ("truth",), HELD_OUT: (_held_out(rows),)}
    logged = {what: max(len(found[name][0]) for name in names) for what, names in needs.items()}
    too_short = {what: least for what, least in {TRUTH: SHORTEST, **LEAST}.items() if 0 < logged[what] < least}
    return {
        "source": source, "steps": rows[-1]["step"] if rows else 0,
        "findings": [finding._asdict() for finding in findings(rows)],
        "checked": [what for what, steps in logged.items() if steps and what not in too_short],
        "not_checked": {what: list(names) for what, names in needs.items() if not logged[what]}, "too_short": too_short,
    }  # fmt: skip


def findings(rows: list[Row]) -> list[Finding]:
    """What is wrong in rows of metrics, the worst first: a reward that lies, numbers that broke, then what wastes a run."""
    found = Curves(rows)
    told = (symptom(found) for _, symptom in SYMPTOMS.values())
    wasted = [finding for finding in told if finding]
    if broken := _broken(rows):
        # whatever stands still since then does so for that
        wasted = [finding for finding in wasted if finding.name != "standstill"]
    return [*_hacking(rows), *broken, *_missing(rows), *_fallen(rows), *wasted, *dead_terms(found)]


def _hacking(rows: list[Row]) -> list[Finding]:
    remedy = "read the rollouts of these steps, try the reward out (rewardlab audit), and stop or mend it before going on"
    whole = [Finding(EXPLOITED[0], f"{s['text']} The policy may be exploiting the reward.", remedy) for s in apart(rows)]
    terms = (s for stretches in gamed(rows).values() for s in stretches)
    return whole + [Finding(EXPLOITED[1], f"{s['text']} This term may be what is exploited.", remedy) for s in terms]


def _broken(rows: list[Row]) -> list[Finding]:
    found = []
    for name, steps in curves.not_finite(rows).items():
        logged = [row["step"] for row in rows if name in row and row["step"] >= steps[0]]
        where = ", ".join(map(str, steps[:5])) + (", …" if len(steps) > 5 else "")
        at = f"at step{'s' * (len(steps) > 1)} {where}" if len(steps) < max(3, len(logged)) else f"from step {steps[0]} on"
        text = f"{name} was not a finite number {at}."
        found.append(Finding("not finite", text, "lower the rate; look for rewards and log-probs that are not finite"))
    return found


def _missing(rows: list[Row]) -> list[Finding]:
    """Verdicts that a reward did not give; `missing` is the share of a step's rollouts."""
    steps, shares = Curves(rows)["missing"]
    if not shares.any():
        return []
    worst = int(shares.argmax())
    worst_of = f"{shares[worst]:.1%}, at step {steps[worst]:.0f}"
    text = f"{shares.mean():.2%} of the rollouts had no verdict (at worst {worst_of}): the reward failed, and they were left out."
    remedy = "rollouts/ say why, in the column `why`; what hangs or fails may do so on one kind of reply"
    return [Finding("missing verdicts", text, remedy)]


def _held_out(rows: list[Row]) -> str:
    return f"eval/{curves.measure(rows)}"


def _fallen(rows: list[Row]) -> list[Finding]:
    """A held-out measure that ends below its best by more than both intervals allow."""
    name = _held_out(rows)
    measured = [row for row in rows if all(isinstance(row.get(k), int | float) for k in (name, *curves.BOUNDS))]
    if len(measured) < 3:
        return []
    points = [{"step": r["step"], "value": r[name], "ci95": [r[k] for k in curves.BOUNDS]} for r in measured]
    first = best_step({point["step"]: point["value"] for point in points})
    best, end = next(point for point in points if point["step"] == first), points[-1]
    change, _, high = curves.difference(best, end)
    if not (high < 0 and math.isfinite(change)):
        return []
    levels = " to ".join(f"{point['value']:.3g} at step {point['step']}" for point in (best, end))
    text = f"Held-out {name.removeprefix('eval/')} fell from {levels}."
    return [Finding("past its best", text, "keep best/, that step's policy; train shorter or at a lower rate, on more problems")]
