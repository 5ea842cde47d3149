"""Compare several runs: the settings that differ, the results, and the paired differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rewardlab.report import curves
from rewardlab.report.html import duration, percent, points, short, table
from rewardlab.report.summary import read_config, summarise
from rewardlab.runs.samples import conform
from rewardlab.util.intervals import interval

Row = dict[str, Any]

NO_ARM = (
    "name",
    "seed",
    "params",
    "formula",
    "recipe",
    "settings.seed",
    "start",
    "settings.start",
    "micro_tokens",
)  # runs that differ only in these are repetitions of one arm; the slots of the formula define an arm
BUDGET = ("budget", "settings.budget")  # with other seeds too: `compare` gives each the tokens of the first method on its seed
LEAST_PAIRS = 5  # seeds that decide on a difference; problems that two runs must share for a paired comparison


@dataclass(frozen=True)
class Finished:
    """A run, read from its files."""

    folder: Path
    name: str
    config: Row
    summary: Row
    rows: list[Row]

    @property
    def arm(self) -> tuple[tuple[str, str], ...]:
        """All settings but the seed: runs that share them are repetitions."""
        return tuple((k, v) for k, v in settings_of(self.config).items() if k not in (*NO_ARM, *BUDGET))


def read_runs(folders: Sequence[Path | str]) -> list[Finished]:
    """Read runs, and give each a distinct name."""
    paths = [Path(folder) for folder in folders]
    names = _names(paths)
    return [Finished(p, n, read_config(p), summarise(p), curves.read_metrics(p)) for p, n in zip(paths, names, strict=True)]


def _names(paths: list[Path]) -> list[str]:
    """Folder names, with as many parents as make them distinct; a folder that is listed twice is numbered."""
    resolved = [path.resolve() for path in paths]
    for depth in range(1, max(len(path.parts) for path in resolved) + 1):
        names = ["/".join(path.parts[-depth:]) for path in resolved]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({i})" for i, path in enumerate(resolved, 1)]


def settings_of(config: Row) -> dict[str, str]:
    """Settings by dotted name; a recipe is given by the slots of its formula."""
    slots = (line.split(None, 1) for line in str(config.get("formula") or "").splitlines())
    other_settings = {k: v for k, v in config.items() if k not in ("formula", "recipe", "name")}
    return {**dict(pair for pair in slots if len(pair) == 2), **dict(_flat(other_settings))}


def _flat(data: Row, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + str(name), str(value)


def overlaid(runs: Sequence[Finished]) -> list[Row]:
    """The sections of all runs with equal panels merged; each line has the index of its `run`. Stacked panels are left out."""
    sections: dict[str, dict[str, Row]] = {}
    for i, run in enumerate(runs):
        for section in curves.sections(run.rows):
            panels = sections.setdefault(section["title"], {})
            for panel in section["panels"]:
                if panel.get("stacked"):
                    continue
                merged = panels.setdefault(panel["title"], panel | {"lines": [], "spans": [], "warn": ""})
                # spans and warnings of single runs are dropped: they would overlap on one panel
                merged["lines"] += [line | {"run": i} for line in panel["lines"]]
                merged["percent"] = merged.get("percent", False) and panel.get("percent", False)
    # framed anew: what is constant in one run need not be so in all
    bare = ("range", "right_range", "ticks")
    return [
        {"title": title, "panels": [curves.framed({k: v for k, v in p.items() if k not in bare}) for p in panels.values()]}
        for title, panels in sections.items()
        if panels
    ]


# -- tables ------------------------------------------------------------------------------------------------------------


def tables(runs: Sequence[Finished]) -> str:
    parts = [("Results", numbers(runs)), ("Paired differences", pairs(runs)), ("Settings that differ", differing(runs))]
    return "".join(f"<section><h2>{title}</h2>{body}</section>" for title, body in parts)


def numbers(runs: Sequence[Finished]) -> str:
    """Held-out results with intervals, and the difference from the first run, treating runs as independent."""
    first = runs[0].summary
    name = escape(str(first["measure"]))
    columns = ["run", f"held-out {name} before", "after", "best", "minus the first run's", "reward", "length", "tokens", "time"]
    rows = [[_key(i, run.name) + _state(run.summary), *_numbers(run.summary, first if i else None)] for i, run in enumerate(runs)]
    note = (
        "95% intervals in brackets. Differences treat the runs as independent; measured on the same problems, "
        "the true interval is narrower."
    )
    return table(columns, rows) + f'<p class="note">{note}</p>'


def _key(i: int, name: str) -> str:
    return f'<i class="key k{i % 8}"></i>{escape(name)}'


def _state(summary: Row) -> str:
    """The last step of a run that has not finished."""
    end = f" of {escape(str(summary['steps']))}" if summary["steps"] else ""
    return "" if summary["finished"] else f"<small> step {summary['step']}{end}</small>"


def _numbers(summary: Row, first: Row | None) -> list[str]:
    best, seconds = summary["best"], summary["seconds"]
    return [
        _measured(summary["before"]),
        _measured(summary["after"]),
        f"{percent(best['value'])}<small> at step {best['step']}</small>" if best else "–",
        _minus_first(summary, first),
        f"{summary['reward']:.3g}" if summary["reward"] is not None else "–",
        f"{summary['length']:.0f}" if summary["length"] is not None else "–",
        short(summary["tokens"]) if summary["tokens"] else "–",
        duration(seconds) if seconds else "–",
    ]


def _measured(measured: Row | None) -> str:
    if not measured:
        return "–"
    bounds = f"<small> [{percent(measured['ci95'][0])}, {percent(measured['ci95'][1])}]</small>" if measured["ci95"] else ""
    return f"<b>{percent(measured['value'])}</b>{bounds}"


def _minus_first(summary: Row, first: Row | None) -> str:
    own_result, first_result = summary["after"], first and first["after"]
    if (
        not own_result
        or not first_result
        or not first
        or any(summary[what] != first[what] for what in ("task", "measure"))
        or not own_result["ci95"]
        or not first_result["ci95"]
    ):
        return "–"
    return _difference(*curves.difference(first_result, own_result))


def _difference(mean: float, low: float, high: float) -> str:
    css_class = "up" if low > 0 else "down" if high < 0 else ""
    return f'<b class="{css_class}">{points(mean)}</b><small> [{points(low)}, {points(high)}]</small>'


def differing(runs: Sequence[Finished]) -> str:
    all_settings = [settings_of(run.config) for run in runs]
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    rows = [[escape(n), *(escape(s.get(n, "–")) for s in all_settings)] for n in names if len({s.get(n) for s in all_settings}) > 1]
    if not rows:
        return '<p class="note">None: these runs were set alike.</p>'
    return table(["setting", *(_key(i, run.name) for i, run in enumerate(runs))], rows, "code")


def pairs(runs: Sequence[Finished]) -> str:
    """Paired differences: over equal seeds, and over training problems that both runs sampled at the same step."""
    rows, reasons = _by_seed(runs)
    rows += _by_problem(runs)
    reasons_text = "".join(f'<p class="note">{escape(reason)}</p>' for reason in dict.fromkeys(reasons))
    if not rows:
        return reasons_text or '<p class="note">None: one run, or repetitions of one.</p>'
    note = (
        "Second minus first, of shares in percentage points, with the 95% Student t interval over pairs. Seeds: the final held-out "
        f"measure, one pair per seed that both have; coloured from {LEAST_PAIRS} pairs on. Problems: the share of right rollouts "
        "of a training problem at the last step that both recorded, one pair per problem that both sampled there; this says "
        "nothing about other seeds."
    )
    return table(["", "paired over", "pairs", "difference"], rows) + reasons_text + f'<p class="note">{note}</p>'


def arms(runs: Sequence[Finished]) -> list[list[Finished]]:
    """Runs that repeat one another on other seeds, in the order of their first ones."""
    alike: dict[Any, list[Finished]] = {}
    for run in runs:
        alike.setdefault(run.arm, []).append(run)
    found: dict[Any, list[Finished]] = {}
    for arm, repetitions in alike.items():
        seeds = [run.config.get("seed") for run in repetitions]
        for run in repetitions:
            # of two runs on one seed the budgets are what is compared
            budget = tuple(settings_of(run.config).get(name) for name in BUDGET) if len(set(seeds)) < len(seeds) else None
            found.setdefault((arm, budget), []).append(run)
    return list(found.values())


def _by_seed(runs: Sequence[Finished]) -> tuple[list[list[str]], list[str]]:
    """Rows of the table, and in words why arms are not paired, or only by one seed."""
    (base, *others), rows, reasons = arms(runs), [], []
    for other in others:
        names = f"{other[0].name} and {base[0].name}"
        values = [
            {str(r.config.get("seed")): r.summary["after"]["value"] for r in arm if r.summary["after"]} for arm in (base, other)
        ]
        shared = [seed for seed in values[0] if seed in values[1]]
        what = [(arm[0].config.get("task"), arm[0].summary["measure"]) for arm in (base, other)]
        if what[0] != what[1]:
            told = " and by ".join(f"{measure} on {task}" for task, measure in reversed(what))
            reasons.append(f"{names} are not paired over seeds: they were measured by {told}.")
        elif not shared:
            reasons.append(f"{names} share no seed on which both have finished.")
        else:
            if len(shared) == 1:
                reasons.append(f"{names} share seed {shared[0]} alone: an interval needs two seeds or more.")
            effects = [values[1][seed] - values[0][seed] for seed in shared]
            is_share = all(0 <= value <= 1 for side in values for value in side.values())
            rows.append(_paired(base[0].name, other[0].name, "seeds", effects, is_share))
    return rows, reasons


def _by_problem(runs: Sequence[Finished]) -> Iterator[list[str]]:
    for run in runs[1:]:
        shared = _steps(runs[0].folder).keys() & _steps(run.folder).keys()
        if not shared:
            continue
        # the latest step says most about the trained policies
        step = max(shared)
        first_shares, second_shares = (_right(_steps(r.folder)[step]) for r in (runs[0], run))
        effects = [second_shares[question] - first_shares[question] for question in first_shares if question in second_shares]
        if len(effects) >= LEAST_PAIRS:
            yield _paired(runs[0].name, run.name, f"problems of step {step}", effects)


def _paired(first: str, second: str, over: str, effects: list[float], share: bool = True) -> list[str]:
    mean, low, high = (float(x) for x in interval(np.array(effects)))
    shown = points if share else _signed
    # with few pairs an interval depends too much on single runs to decide anything
    css_class = "" if len(effects) < LEAST_PAIRS else "up" if low > 0 else "down" if high < 0 else ""
    bounds = f"<small> [{shown(low)}, {shown(high)}]</small>" if len(effects) > 1 else ""
    return [f"{escape(second)} minus {escape(first)}", over, str(len(effects)), f'<b class="{css_class}">{shown(mean)}</b>{bounds}']


def _signed(value: float) -> str:
    return f"{value:+.4g}".replace("-", "−")


def _steps(folder: Path) -> dict[int, Path]:
    return {int(path.stem[5:]): path for path in (folder / "rollouts").glob("step-*.parquet") if path.stem[5:].isdigit()}


def _right(path: Path) -> dict[str, float]:
    """Question to the share of right rollouts; empty if the file cannot be read."""
    try:
        recorded = conform(pq.ParquetFile(path).read(["question", "truth"]))
    except (OSError, pa.ArrowException):
        return {}
    by_question: dict[str, list[float]] = {}
    for question, truth in zip(recorded["question"].to_pylist(), recorded["truth"].to_pylist(), strict=True):
        if question and truth is not None and math.isfinite(truth):
            by_question.setdefault(question, []).append(truth)
    return {question: sum(values) / len(values) for question, values in by_question.items()}
