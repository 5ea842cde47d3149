"""Write the report of one run, or of several compared: one HTML file that works offline in any browser.

Within the folder of a comparison it loads Plotly's library from there (`library.py`); elsewhere it holds it.

Text that a model wrote is treated as hostile. It is escaped in HTML. It reaches the script as packed data, or as JSON in which
no tag can open, and the script inserts it as text only. The page's content security policy allows only its own
two scripts (by their hashes, or the nonce of the library) and loads nothing from the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.report import compare as report_compare
from rewardlab.report import curves
from rewardlab.report import html as report_html
from rewardlab.report.data import clean, packed
from rewardlab.report.library import hashed, library, shared
from rewardlab.report.summary import read_config, summarise
from rewardlab.runs.samples import ROLLOUTS, TOKENS, samples
from rewardlab.util.files import new_file

Row = dict[str, Any]
SCRIPTS = ("page", "curves", "filter", "tokens", "tree", "rollouts")


def write_report(run_dir: Path | str, out: Path | str | None = None, self_contained: bool = False) -> Path:
    """Write `report.html` into a run's folder (or to `out`) atomically, and return its path.

    Reads config.json, metrics.jsonl, rollouts/*.parquet and summary.json; all but the first may be missing or
    truncated. self_contained: hold the library even within a comparison. Raises RewardlabError if the folder is not a run.
    """
    run_dir = Path(run_dir)
    config, summary, rows = read_config(run_dir), summarise(run_dir), curves.read_metrics(run_dir)
    fields = {
        "kind": "rewardlab run",
        "title": escape(f"{config.get('method', 'run')} on {config.get('task', 'unknown task')}"),
        "facts": report_html.facts(config, summary),
        "warnings": report_html.warnings(summary["warnings"]),
        "overview": report_html.overview(summary),
        "settings": report_html.settings(config),
    }
    data = {"runs": [{"name": run_dir.name, "clock": curves.clocks(rows)}], "sections": curves.sections(rows)}
    return _write(Path(out) if out else run_dir / "report.html", fields, data, [run_dir], self_contained)


def write_comparison(run_dirs: Sequence[Path | str], out: Path | str, self_contained: bool = False) -> Path:
    """Write one page that compares several runs, with their curves overlaid, and return its path.

    Raises RewardlabError if a folder is not a run.
    """
    runs = report_compare.read_runs(run_dirs)
    tasks = dict.fromkeys(str(run.config.get("task", "unknown task")) for run in runs)
    fields = {
        "kind": "rewardlab runs compared",
        "title": escape(f"{len(runs)} runs on {', '.join(tasks)}"),
        "facts": "",
        "warnings": report_html.warnings([f"{run.name}: {text}" for run in runs for text in run.summary["warnings"]]),
        "overview": report_compare.tables(runs),
        "settings": "".join(report_html.settings(run.config, run.name) for run in runs),
    }
    data = {
        "runs": [{"name": run.name, "clock": curves.clocks(run.rows)} for run in runs],
        "sections": report_compare.overlaid(runs),
    }
    return _write(Path(out), fields, data, [run.folder for run in runs], self_contained)


def _write(out: Path, pieces: dict[str, str], data: Row, run_dirs: list[Path], self_contained: bool) -> Path:
    runs = len(run_dirs)
    # the budget of a page is shared, so that a comparison is no larger than a single report
    rollouts = packed([samples(folder, ROLLOUTS // runs, TOKENS // runs) for folder in run_dirs])
    page = _page(pieces | {"data": _embed(data), "rollouts": rollouts}, out, None if self_contained else shared(out))
    with new_file(out) as new:
        new.write_text(page, encoding="utf-8", errors="replace")
    return out


def _page(pieces: dict[str, str], out: Path, file: Path | None) -> str:
    own_script = "".join(_asset(f"{name}.js") for name in SCRIPTS)
    plotly = library(out, file, *pieces.values())
    pieces |= {
        "allowed": f"{plotly.source} 'sha256-{hashed(own_script)}'",
        "style": _asset("style.css"),
        "plotly": plotly.element,
        "script": own_script,
    }
    # a single pass: inserted text is never searched for further placeholders
    return re.sub(r"\{\{(\w+)\}\}", lambda m: pieces[m[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return Path(__file__).with_name("assets").joinpath(name).read_text("utf-8")


def _embed(data: Any) -> str:
    """JSON that stays inert inside a script element."""
    text = json.dumps(clean(data), separators=(",", ":"), allow_nan=False)
    # no "</script>" or "<!--" of a reply can end or change the element
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
