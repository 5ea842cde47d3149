"""Read metrics.jsonl and arrange the curves of a run as panels of a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.report.divergence import apart, gamed, names, on_one_axis
from rewardlab.runs.metrics import finite, must_be_finite, plain

Row = dict[str, Any]
Points = tuple[list[float], list[float]]

LONGEST = 1500  # points of one curve; beyond that, neighbours are averaged
CONSTANT = 1e-6  # relative differences below this are rounding
BOUNDS = ("eval/ci95_low", "eval/ci95_high")
EXACT = ("lr", "tokens")  # noise-free, so smoothing would only distort them
PHASES = ("generate", "reward", "train")
NAMED = {
    "length": ("Length", "tokens per reply"),
    "cut_off": ("Replies cut off", "at the length limit, of all"),
    "turns": ("Replies per episode", ""),
    "turns_cut_off": ("Replies of episodes cut off", "at the length limit, of all"),
    "out_of_turns": ("Episodes out of turns", "stopped before their end, of all"),
    "out_of_context": ("Episodes out of context", "stopped before their end, of all"),
    "calls": ("Replies that call tools", "per episode"),
    "failed_calls": ("Failed calls", "of the replies that call"),
    "failed_searches": ("Failed searches", "of all"),
    "entropy": ("Entropy", "nats per token"),
    "kl": ("KL to the reference", "nats per token"),
    "drift": ("KL to the sampling policy", "nats per token"),
    "ratio_far": ("Importance ratios off by over 20%", "of decisions"),
    "mismatch_far": ("Sampler/trainer mismatch", "decisions whose probabilities differ by over 20%"),
    "preferred": ("Pairs told apart", "whose chosen reply has gained more, of the pairs of a step"),
    "margin": ("Margin of pairs", "by which the chosen reply has gained more"),
    "chosen_gain": ("Chosen replies", "nats per reply that they have gained over the reference"),
    "rejected_gain": ("Rejected replies", "nats per reply that they have gained over the reference"),
    "loss": ("Loss", ""),
    "grad_norm": ("Gradient norm", "before clipping"),
    "clip_share": ("Clipped share", "of tokens"),
    "lr": ("Learning rate", ""),
    "missing": ("Missing verdicts", "of the rollouts of a step"),
}
EPISODES = ("turns", "turns_cut_off", "out_of_turns", "out_of_context", "calls", "failed_calls", "failed_searches")
POLICY = ("length", "cut_off", *EPISODES, "entropy", "kl", "drift", "ratio_far", "mismatch_far")
PAIRS = ("preferred", "margin", "chosen_gain", "rejected_gain")
LINES = 6  # of a panel of pairs: more could not be told apart
TOGETHER = {
    "conflict/": ("Conflict of terms", "of the pairs of replies that two terms tell apart, how many they order differently"),
    "untrue/": ("Terms against the truth", "of the pairs of a right and a wrong reply, how many a term orders the wrong way round"),
}
"""Metrics of pairs of terms by their prefix: title and note of their panel."""
OLD_NAMES = {"drawn_far": "mismatch_far"}
"""Metrics of older runs by their present names."""
GROUPS = {"signal": "with a signal", "all_right": "all right", "all_wrong": "all wrong"}
"""Shares of groups, and what they are called in the panel that they share."""
SHOWN = {*GROUPS, "step", "reward", "truth", "tokens", "eval/n", *BOUNDS, *NAMED}


def read_metrics(run_dir: Path) -> list[Row]:
    """One row per step, in order. A truncated line (of a killed run) is skipped; of two values for a step the later one wins."""
    path = run_dir / "metrics.jsonl"
    rows: dict[int, Row] = {}
    for line in path.read_text("utf-8", "replace").split("\n") if path.exists() else ():
        try:
            row = json.loads(line)
            step = int(row["step"])
        except (ValueError, TypeError, KeyError, OverflowError):
            continue
        # training and evaluation may log the same step in separate lines
        rows.setdefault(step, {}).update({OLD_NAMES.get(k, k): v for k, v in row.items()})
    return [rows[step] for step in sorted(rows)]


def points(rows: list[Row], name: str) -> Points:
    """Steps and values at which `name` was logged; NaN if the logged value is not a finite number."""
    logged = [(float(row["step"]), finite(row[name])) for row in rows if name in row]
    return [step for step, _ in logged], [value for _, value in logged]


def last(rows: list[Row], name: str) -> float | None:
    """The last finite value of `name`."""
    values = [v for v in points(rows, name)[1] if math.isfinite(v)]
    return values[-1] if values else None


def not_finite(rows: list[Row]) -> dict[str, list[int]]:
    """Steps at which a loss or gradient norm was logged but not finite (infinities and NaN may be written as null)."""
    logged = {name: points(rows, name) for name in names(rows) if must_be_finite(name)}
    bad = {name: [int(x) for x, y in zip(*of, strict=True) if math.isnan(y)] for name, of in logged.items()}
    return {name: steps for name, steps in bad.items() if steps}


def difference(before: Row, after: Row) -> tuple[float, float, float]:
    """after - before with a 95% interval (Newcombe 1998, method 10), treating the two as independent.

    Both are {"value": p, "ci95": [low, high]}. Measured on the same problems, the true interval is narrower.
    """
    (p, (a, b)), (q, (c, d)) = ((x["value"], x["ci95"]) for x in (before, after))
    return q - p, q - p - math.hypot(q - c, b - p), q - p + math.hypot(d - q, p - a)


def sections(rows: list[Row]) -> list[Row]:
    """The page's curves: [{title, panels: [{title, note, lines, ...}]}], empty panels and sections left out."""
    terms, rising = [k.removeprefix("reward/") for k in names(rows) if k.startswith("reward/")], gamed(rows)
    phases = {f"seconds/{p}" for p in (*PHASES, "step")}
    others = [k for k in names(rows) if k not in SHOWN | phases and not k.startswith(("reward/", *TOGETHER))]
    eval_panels = [
        _single(rows, k, f"Held-out {k.removeprefix('eval/')}")
        for k in others
        if k.startswith("eval/") and k != f"eval/{measure(rows)}"
    ]
    others = [k for k in others if not k.startswith("eval/")]
    reward = _single(rows, "reward", "Reward", "mean over rollouts")
    sections_of_panels: list[tuple[str, list[Row | None]]] = [
        (
            "Learning",
            [_accuracy(rows), _proxy(rows), reward, _groups(rows), *(_single(rows, k, *NAMED[k]) for k in PAIRS), *eval_panels],
        ),
        ("Reward terms", [*(_term(rows, t, rising.get(t, [])) for t in terms), *_together(rows)]),
        ("Policy", [_single(rows, k, *NAMED[k]) for k in POLICY]),
        ("Optimisation", [_single(rows, k, *NAMED[k]) for k in ("loss", "grad_norm", "clip_share", "lr")]),
        ("Cost", [_time(rows), _single(rows, "tokens", "Tokens", "so far"), _missing(rows)]),
        ("Other measures", [_single(rows, k, k) for k in others]),
    ]
    sections_with_data = (
        {"title": title, "panels": [framed(p) for p in panels if p and p["lines"]]} for title, panels in sections_of_panels
    )
    return [section for section in sections_with_data if section["panels"]]


def clocks(rows: list[Row]) -> dict[str, list[float]]:
    """Possible x axes: the steps, and the cumulative tokens and seconds at each, if they were logged."""
    tokens = np.maximum.accumulate([_known(row.get("tokens")) for row in rows] or [0.0])
    seconds = np.cumsum([_known(row.get("seconds/step")) for row in rows])
    totals = {"tokens": tokens, "seconds": seconds}
    return {"step": [row["step"] for row in rows], **{k: [float(f"{v:.7g}") for v in x] for k, x in totals.items() if x.any()}}


def measure(rows: list[Row]) -> str:
    """The name of the held-out measure: the first that an evaluation logs."""
    named = (k for row in rows for k in row if k.startswith("eval/"))
    return next(named, "eval/pass@1").removeprefix("eval/")


def _accuracy(rows: list[Row]) -> Row:
    name = measure(rows)
    line = _line(rows, f"eval/{name}", name)
    bounds = [dict(zip(*points(rows, bound), strict=True)) for bound in BOUNDS]
    if line and all(bounds):
        line["low"], line["high"] = ([plain(b.get(x, math.nan)) for x in line["x"]] for b in bounds)
    note = f"{name} on held-out problems, with its 95% interval"
    # a reward within 0 and 1 is no share of right replies
    is_share = name != "reward" and line is not None and all(v is None or 0 <= v <= 1 for v in line["y"])
    return _panel("Held-out accuracy" if is_share else f"Held-out {name}", note, [line], percent=is_share)


def _proxy(rows: list[Row]) -> Row | None:
    proxy, truth = _line(rows, "reward", "proxy reward"), _line(rows, "truth", "truth (held-out verifier)")
    if not proxy or not truth:
        return None
    values = [v for v in proxy["y"] if v is not None]
    # rewards on another scale than the verdict's 0 to 1 get an axis of their own
    one_axis = on_one_axis(values)
    note = "the reward that training optimises, and the verdict of the task's own verifier on the same rollouts"
    panel = _panel("Proxy against truth", note, [proxy, truth | {"right": not one_axis}])
    return panel | _marks(apart(rows))


def _groups(rows: list[Row]) -> Row:
    note = "shares of groups: whose replies earn different rewards, and whose replies are all right or all wrong"
    return _panel("Groups", note, [_line(rows, name, words) for name, words in GROUPS.items()], percent=True)


def _term(rows: list[Row], term: str, stretches: list[Row]) -> Row:
    return _single(rows, f"reward/{term}", term) | (_marks(stretches) if stretches else {})


def _marks(stretches: list[Row]) -> Row:
    """Stretches as a panel shows them."""
    return {"spans": [[s["first"], s["last"]] for s in stretches], "warn": " ".join(s["text"] for s in stretches)}


def _together(rows: list[Row]) -> list[Row]:
    """How the terms go together, a panel for each of TOGETHER, with the lines that are highest on average."""
    return [_panel(title, note, _highest(rows, prefix)) for prefix, (title, note) in TOGETHER.items()]


def _highest(rows: list[Row], prefix: str) -> list[Row | None]:
    means = {k: np.mean([y for y in points(rows, k)[1] if math.isfinite(y)] or [0.0]) for k in names(rows) if k.startswith(prefix)}
    chosen = sorted(means, key=lambda k: -means[k])[:LINES]
    return [_line(rows, k, k.removeprefix(prefix).replace("~", " against ")) for k in chosen]


def _time(rows: list[Row]) -> Row:
    """Seconds per phase, stacked; `other` is the rest of the step."""
    lines = [_line(rows, f"seconds/{phase}", phase) for phase in PHASES]
    others = [r | {"rest": max(0.0, finite(r["seconds/step"]) - _phases(r))} for r in rows if "seconds/step" in r]
    lines.append(_line(others, "rest", "other"))
    totals = {x["name"]: sum(v for v in x["y"] if v is not None) for x in lines if x}
    all_seconds = sum(totals.values()) or 1.0
    note = "seconds per step: " + ", ".join(f"{name} {100 * t / all_seconds:.0f}%" for name, t in totals.items())
    return _panel("Time per phase", note, lines, stacked=True)


def _missing(rows: list[Row]) -> Row | None:
    return _single(rows, "missing", *NAMED["missing"]) if any(points(rows, "missing")[1]) else None


def _phases(row: Row) -> float:
    return sum(v for v in (finite(row.get(f"seconds/{p}", 0.0)) for p in PHASES) if math.isfinite(v))


def _single(rows: list[Row], name: str, title: str, note: str = "") -> Row:
    line = _line(rows, name, title)
    values = {v for v in line["y"] if v is not None} if line else set()
    if line and len(values) == 1 and len(line["y"]) > 2:
        note = f"{note}, constant".removeprefix(", ")
    return _panel(title, note, [line])


def _panel(title: str, note: str, lines: list[Row | None], **traits: Any) -> Row:
    return {"title": title, "note": note, "lines": [x for x in lines if x], **traits}


def _line(rows: list[Row], name: str, label: str) -> Row | None:
    x, y = thin(points(rows, name))
    if not any(math.isfinite(v) for v in y):
        return None
    exact = name in EXACT or name.startswith("eval/")
    return {"name": label, "x": [plain(v) for v in x], "y": [plain(v) for v in y], "exact": exact}


def framed(panel: Row) -> Row:
    """The panel with what plotly would choose badly for it: the ranges of constant curves, and the digits of shares."""
    if panel.get("stacked"):
        return panel
    share = panel.get("percent", False)
    frame: Row = {}
    for name, on_right in (("range", False), ("right_range", True)):
        lines = [line for line in panel["lines"] if line.get("right", False) == on_right]
        values = [v for line in lines for key in ("y", "low", "high") for v in line.get(key, ()) if v is not None]
        if bounds := around(values, share):
            frame[name] = bounds
        elif share and values:
            # with whole percents, a curve between 41.2% and 41.8% would have the same label at every tick
            spread = max(values) - min(values)
            frame["ticks"] = ".0%" if spread > 0.05 else ".1%" if spread > 0.005 else ".2%"
    return panel | frame


def around(values: Sequence[float], share: bool = False) -> list[float] | None:
    """The range of an axis for values that are all the same; None where they differ.

    Plotly gives a constant the range from 1 below to 1 above it, on which a learning rate of 3e-4 is drawn at 0.
    """
    if not values or max(values) - min(values) > CONSTANT * max(map(abs, values)):
        return None
    middle = values[0]
    half = abs(middle) / 2 or 1.0
    return [max(-0.05, middle - half), min(1.05, middle + half)] if share else [middle - half, middle + half]


def thin(curve: Points, longest: int = LONGEST) -> Points:
    """At most `longest` points, each the mean of the finite values of its neighbours."""
    if len(curve[0]) <= longest:
        return curve
    x, y = (np.array_split(np.array(c), longest) for c in curve)
    return [float(p.mean()) for p in x], [_mean(p) for p in y]


def _mean(values: np.ndarray) -> float:
    finite_values = values[np.isfinite(values)]
    return float(finite_values.mean()) if len(finite_values) else math.nan


def _known(value: Any) -> float:
    number = finite(value)
    return number if math.isfinite(number) else 0.0
