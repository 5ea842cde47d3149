"""The page of a step scorer: its figures, calibration plot, and accuracy by position and length. It runs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.report.html import table
from rewardlab.util.files import new_file

STYLE = """
:root { color-scheme: light dark; --line: #8884; --ink: #2f6fdd; }
body { max-width: 900px; margin: 32px auto; padding: 0 16px; font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; margin: 8px 0 24px; } th, td { padding: 4px 12px; border-bottom: 1px solid var(--line); }
td { text-align: right; font-variant-numeric: tabular-nums; } th { text-align: left; font-weight: 600; }
svg { max-width: 420px; height: auto; } svg text { font-size: 12px; fill: currentColor; }
.wide { overflow-x: auto; } .note { opacity: 0.75; }
"""
SIDE, EDGE = 360, 40
"""Pixels: of the plot, and around it."""


def write_page(document: Mapping[str, Any], path: Path) -> None:
    with new_file(path.resolve()) as temporary:
        temporary.write_text(page(document), "utf-8")


def page(document: Mapping[str, Any]) -> str:
    title = f"{document['model']} on {document['on']}"
    fitted = document["threshold_fitted_on"]
    threshold = f"threshold {document['threshold']:.3g}" + (f", chosen on {fitted:,} other solutions" if fitted else "")
    cost = document["cost"]
    about = (
        f"{document['solutions']:,} solutions ({document['left_out']:,} left out), read as {document['convention']!r}; "
        f"{threshold}; {cost['tokens']:,} tokens in {cost['seconds']:,.1f} s"
    )
    sections = [
        section("First errors", figures_table([document["first_error"]]), FIRST),
        section("Steps", figures_table([document["steps"]]), STEPS),
        *(
            [section("Choosing among solutions to a question", figures_table(rows), CHOOSING)]
            if (rows := document["choosing"])
            else ()
        ),
        section("Calibration", calibration_plot(document["reliability"]) + figures_table(document["reliability"]), CALIBRATION),
        section("By place of the step", figures_table(document["by_position"])),
        section("By length of the solution", figures_table(document["by_length"])),
        *_benchmark(document),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(about)}</p>\n" + "\n".join(sections) + "</body></html>\n"
    )


FIRST = (
    "error_accuracy: of solutions with a wrong step, how often the first step judged wrong is the first wrong one. "
    "correct_accuracy: of those without, how often no step is judged wrong. f1: the harmonic mean of the two (ProcessBench)."
)
STEPS = "auc: how often a right step is scored above a wrong one. brier, ece: of its chance of being right; lower is better."
CHOOSING = (
    "chosen: how often, of the solutions to a question, the one that is worth most is right, by its least step, its last, their "
    "product or mean. random: what a random choice gets. best: how often there is a right one. by_auc: how often a right one is "
    "worth more than a wrong one to the same question."
)
CALIBRATION = "Each dot is a tenth of the chances: what was said, and the share of steps that is right. On the line both agree."


def _benchmark(document: Mapping[str, Any]) -> list[str]:
    found = []
    if bench := document.get("prmbench"):
        rows = [{"category": name, **row} for name, row in bench["categories"].items()]
        whole = {name: value for name, value in bench.items() if name not in ("groups", "categories")}
        groups = [{"group": name, "prm_score": value} for name, value in bench["groups"].items()]
        note = "prm_score: the mean of the F1 of right and of wrong steps."
        found.append(section("PRMBench", figures_table([whole]) + figures_table(groups) + figures_table(rows), note))
    if subsets := document.get("subsets"):
        rows = [{"file": name, **row} for name, row in subsets.items() if isinstance(row, Mapping)]
        mean = f"The mean of their F1: {subsets['mean_f1']:.3f}." if "mean_f1" in subsets else ""
        found.append(section("By file", figures_table(rows), mean))
    return found


def section(title: str, body: str, note: str = "") -> str:
    return f"<h2>{escape(title)}</h2>" + (f'<p class="note">{escape(note)}</p>' if note else "") + body


def figures_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of figures, which need not all have the same; empty for none."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table([escape(n) for n in names], [[_shown(row.get(name)) for name in names] for row in rows]) if names else ""


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else escape(f"{value:,}" if isinstance(value, int) else str(value))


def calibration_plot(bins: Sequence[Mapping[str, float]]) -> str:
    """Dots of (mean chance, share right), as large as they have many steps, and the diagonal."""
    most = max((row["n"] for row in bins), default=1)
    dots = "".join(
        f'<circle cx="{EDGE + SIDE * row["chance"]:.1f}" cy="{EDGE + SIDE * (1 - row["right"]):.1f}" '
        f'r="{3 + 9 * (row["n"] / most) ** 0.5:.1f}" fill="var(--ink)" fill-opacity="0.7"><title>said {row["chance"]:.2f}, right '
        f"{row['right']:.2f}, {row['n']:,} steps</title></circle>"
        for row in bins
    )
    far, size = EDGE + SIDE, SIDE + 2 * EDGE
    ticks = "".join(
        f'<text x="{EDGE + SIDE * x:.0f}" y="{far + 18}" text-anchor="middle">{x:g}</text>'
        f'<text x="{EDGE - 8}" y="{far - SIDE * x + 4:.0f}" text-anchor="end">{x:g}</text>'
        for x in (0, 0.5, 1)
    )
    return (
        f'<svg viewBox="0 0 {size} {size}" role="img" aria-label="calibration plot">'
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="none" stroke="var(--line)"/>'
        f'<line x1="{EDGE}" y1="{far}" x2="{far}" y2="{EDGE}" stroke="var(--line)" stroke-dasharray="4 4"/>{ticks}{dots}'
        f'<text x="{EDGE + SIDE / 2}" y="{far + 34}" text-anchor="middle">chance that it gives</text>'
        f'<text x="{EDGE}" y="{EDGE - 12}">share that is right</text></svg>'
    )
