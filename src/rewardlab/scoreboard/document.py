"""The document of a scoreboard: figures with intervals, differences decided together, and the files that hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.data.files import write
from rewardlab.scoreboard import figures as statistics
from rewardlab.scoreboard.asked import Asked
from rewardlab.scoreboard.biases import biases
from rewardlab.scoreboard.card import card, file_names
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict, first_reason, missing
from rewardlab.scoreboard.page import page
from rewardlab.util.files import write_json, write_text


@dataclass(frozen=True)
class Answered:
    """What one rater said of all items of one benchmark.  seconds: 0 for what was known before.  blind: items with images were
    rated by their text alone.  cost: of a served model."""

    rater: str
    asked: Asked
    verdicts: list[Verdict]
    seconds: float = 0.0
    scale: bool = False
    blind: bool = False
    cost: Mapping[str, float] = field(default_factory=dict)


def document_of(asked: Sequence[Asked], answered: Sequence[Answered]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    apart: list[dict[str, Any]] = []
    for a in asked:
        headlines, marks = {}, []
        for one in (x for x in answered if x.asked.name == a.name):
            entry, headline = _entry(one)
            rows.setdefault(one.rater, {})[a.name] = entry
            # what was asked about other items is not compared
            if one.asked is a:
                headlines[one.rater] = headline
                marks.append(_marks(a, one.verdicts))
        prompts = statistics.prompts_behind(a.benchmark.figures, marks, [item.cluster for item in a.items])
        apart += [{"benchmark": a.name, **row} for row in statistics.differences(headlines, prompts)]
    statistics.holm(apart)
    about = {
        a.name: {
            "title": a.benchmark.title, "items": len(a.items), "of": a.of, "asks": a.benchmark.asks,
            "headline": a.benchmark.headline, "chance": dict(a.benchmark.chance), "lacks": a.benchmark.lacks, "equal": a.equal,
            "other": a.other, "other_where": a.where,
            "lacking": a.benchmark.lacking(a.items) if a.benchmark.lacking else "",
        }
        for a in asked
    }  # fmt: skip
    return {"benchmarks": about, "raters": rows, "differences": apart}


def figures_of(asked: Asked, verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The figures of these verdicts, the headline first."""
    return dict(asked.benchmark.figures(_marks(asked, verdicts)))


def _marks(asked: Asked, verdicts: Sequence[Verdict]) -> Marks:
    rows = [asked.benchmark.marks(item, verdict) for item, verdict in zip(asked.items, verdicts, strict=True)]
    return Marks.of(asked.items, rows)


def _entry(one: Answered) -> tuple[dict[str, Any], tuple[float, np.ndarray]]:
    """The figures of a rater on a benchmark, and the first with its resamples: NaN where these items do not say it."""
    benchmark, items = one.asked.benchmark, one.asked.items
    marks = _marks(one.asked, one.verdicts)
    found = benchmark.figures(marks)
    replicates = statistics.bootstrap(benchmark.figures, marks, one.asked.index)
    entry: dict[str, Any] = {
        "items": len(items),
        "figures": {
            name: {"value": float(value), "ci95": statistics.interval(float(value), replicates[name], len(items))}
            for name, value in found.items() if not math.isnan(value)
        },
        "no_verdict": float(np.mean([missing(i, v, benchmark.asks) for i, v in zip(items, one.verdicts, strict=True)])),
        "cut": sum(v.cut for v in one.verdicts), "tokens": sum(v.tokens for v in one.verdicts), "seconds": round(one.seconds, 2),
        "biases": biases(items, one.verdicts, one.scale) if benchmark.asks == "replies" else {},
        "cost": dict(one.cost), "blind": one.blind, "failed": sum(v.failed for v in one.verdicts),
    }  # fmt: skip
    entry["why"], entry["where"] = first_reason(items, one.verdicts, failed=False)
    entry["failure"], entry["failure_where"] = first_reason(items, one.verdicts, failed=True)
    first = next(iter(found))
    return entry, (float(found[first]), replicates[first])


def write_files(out: Path, document: Mapping[str, Any], asked: Sequence[Asked], answered: Sequence[Answered]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "scoreboard.json", document)
    rows = [
        {"benchmark": one.asked.name, "rater": one.rater, "id": item.id, **verdict.to_json()}
        for one in answered for item, verdict in zip(one.asked.items, one.verdicts, strict=True)
    ]  # fmt: skip
    write(out / "verdicts.jsonl", rows)
    items, judged = {a.name: a.items for a in asked}, dict[str, dict[str, list[Verdict]]]()
    for one in answered:
        if any(one.asked is a for a in asked):
            judged.setdefault(one.asked.name, {})[one.rater] = one.verdicts
    write_text(out / "index.html", page(document, items, judged))
    (out / "cards").mkdir(exist_ok=True)
    for rater, name in file_names(list(document["raters"])).items():
        write_text(out / "cards" / name, card(rater, document))
