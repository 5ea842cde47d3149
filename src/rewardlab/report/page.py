"""Write the report of one run, or of several compared: one HTML file that works offline in any browser.

Text that a model wrote is treated as hostile. It is escaped in HTML. It reaches the script as packed data, or as JSON in which
no tag can open, and the script inserts it as text only. The page's content security policy allows only its own
two scripts (by their hashes) and loads nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
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
from rewardlab.report.summary import read_config, summarise
from rewardlab.runs.samples import ROLLOUTS, TOKENS, samples
from rewardlab.util.files import new_file

Row = dict[str, Any]
SCRIPTS = ("page", "curves", "filter", "tokens", "tree", "rollouts")


def write_report(run_dir: Path | str, out: Path | str | None = None) -> Path:
    """Write `report.html` into a run's folder (or to `out`) atomically, and return its path.

    Reads config.json, metrics.jsonl, rollouts/*.parquet and summary.json; all but the first may be missing or
    truncated. Raises RewardlabError if the folder is not a run.
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
    return _write(Path(out) if out else run_dir / "report.html", fields, data, [run_dir])


def write_comparison(run_dirs: Sequence[Path | str], out: Path | str) -> Path:
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
    return _write(Path(out), fields, data, [run.folder for run in runs])


def _write(out: Path, pieces: dict[str, str], data: Row, run_dirs: list[Path]) -> Path:
    runs = len(run_dirs)
    # the budget of a page is shared, so that a comparison is no larger than a single report
    rollouts = packed([samples(folder, ROLLOUTS // runs, TOKENS // runs) for folder in run_dirs])
    page = _page(pieces | {"data": _embed(data), "rollouts": rollouts})
    with new_file(out) as new:
        new.write_text(page, encoding="utf-8", errors="replace")
    return out


def _page(pieces: dict[str, str]) -> str:
    from plotly.offline import get_plotlyjs

    plotly, own_script = get_plotlyjs(), "".join(_asset(f"{name}.js") for name in SCRIPTS)
    pieces |= {
        "hashes": " ".join(f"'sha256-{_hash(script)}'" for script in (plotly, own_script)),
        "style": _asset("style.css"),
        "plotly": plotly,
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


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
