"""An audit as one HTML file that opens anywhere, offline, and runs no script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.audit.findings import visible
from rewardlab.audit.wording import comparison_text, counted, facts, result_text, seconds, verdict

SHOWN = 1_500
"""Characters of a reply that the page shows."""
NONE = '<i class="none">(empty)</i>'
MARKS = {"fault": "fault", "warning": "warning", "note": "note", "ok": "fine"}


def page(document: Mapping[str, Any]) -> str:
    template = Path(__file__).with_name("page.html").read_text("utf-8")
    findings = [finding for finding in document["findings"] if finding["severity"] != "ok"]
    fields = {
        "title": escape(visible(document["target"])),
        "state": document["verdict"],
        "verdict": escape(verdict(document)),
        "big": escape(
            counted(document["counts"]["fault"], "fault")
            if document["counts"]["fault"]
            else "No fault"
            if document["verdict"] == "clean"
            else "Unfinished"
        ),
        "rest": escape(", ".join(counted(document["counts"][k], k) for k in ("warning", "note") if document["counts"][k])),
        "facts": "".join(f"<li>{escape(fact)}</li>" for fact in facts(document)),
        "tiles": "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in _tiles(document)),
        "findings": "".join(_finding(finding, document["target"]) for finding in findings) or '<p class="note">Nothing.</p>',
        "probes": "".join(_probe(name, title, document) for name, title in document["probes"].items()),
        "seconds": f"{document['seconds']:.0f}",
        "version": escape(document["rewardlab"]),
    }
    # one pass, so that placeholders within a reply are not filled in
    return re.sub(r"\{\{(\w+)\}\}", lambda m: fields[m[1]], template)


def _tiles(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    speed = document["speed"]
    checks = sum(finding["of"] for finding in document["findings"] if finding["probe"] != "health")
    tiles = [("checks", f"{checks:,}")]
    if speed:
        tiles += [("calls a second", f"{speed['per_second']:,.0f}")]
        tiles += [(name, seconds(speed[name])) for name in ("p50", "p95", "p99", "max")]
    return tiles


def _finding(finding: Mapping[str, Any], target: str) -> str:
    first, *further = finding["examples"] or [None]
    how_often = f'<span class="of">{finding["failed"]} of {finding["of"]}</span>' if finding["of"] else ""
    heading = f'<h3><b class="mark">{MARKS[finding["severity"]]}</b>{escape(visible(finding["says"]))}{how_often}</h3>'
    more = "".join(_example(example, target) for example in further)
    more = f"<details><summary>{counted(len(further), 'more example')}</summary>{more}</details>" if further else ""
    return f'<article class="card {finding["severity"]}">{heading}{_example(first, target) if first else ""}{more}</article>'


def _example(example: Mapping[str, Any], target: str) -> str:
    text = visible(str(example["response"]))
    shown = escape(text[:SHOWN] + ("…" if len(text) > SHOWN else "")) or NONE
    prompt = escape(visible(str(example["prompt"]))[:300])
    replay = escape(f"rewardlab audit '{target}' --replay {example['id']}")
    return (
        f'<div class="example"><div class="prompt"><b>prompt</b> {prompt}</div><pre>{shown}</pre>{_second(example)}'
        f'<div class="pay"><b>{escape(visible(result_text(example)))}</b> '
        f"<span>{escape(visible(comparison_text(example)))}</span></div>"
        f"<code>{replay}</code></div>"
    )


def _second(example: Mapping[str, Any]) -> str:
    """The reply that stood second, of a comparison."""
    if "swapped" not in example:
        return ""
    text = visible(str(example["meta"]["second"]))[:SHOWN]
    return f'<div class="prompt"><b>against</b></div><pre>{escape(text) or NONE}</pre>'


def _probe(name: str, title: str, document: Mapping[str, Any]) -> str:
    rows = [finding for finding in document["findings"] if finding["probe"] == name]
    unfinished = document["unfinished"].get(name)
    unfinished_note = f' <span class="late">{unfinished[0]} of {unfinished[1]} in time</span>' if unfinished else ""
    if not rows and not unfinished_note:
        why = "not a reward of answers" if name in document["skipped"] else "not tried on this target"
        return f'<tr class="group"><th colspan="4">{escape(title)}</th></tr><tr class="off"><td colspan="4">{why}</td></tr>'
    body = "".join(_row(finding) for finding in rows)
    return f'<tr class="group"><th colspan="4">{escape(title)}{unfinished_note}</th></tr>{body}'


def _row(finding: Mapping[str, Any]) -> str:
    mean = "" if finding["mean"] is None else f"{finding['mean']:.3g}"
    cells = (finding["name"], f"{finding['failed']} of {finding['of']}", mean, MARKS[finding["severity"]])
    return f'<tr class="{finding["severity"]}">{"".join(f"<td>{escape(visible(cell))}</td>" for cell in cells)}</tr>'
