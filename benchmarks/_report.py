"""How fast the report of a run with 10,000 rollouts is in headless Chromium.

python benchmarks/_report.py [--out FILE] [--repeats 5]

Rollouts are those of tests/report/test_report_browser.py: 20 steps of 500, 98 random words each with four numbers of every word.
Seconds to load (the first time and the median of the later ones), milliseconds of filters, sorts and scrolling (medians), the
page's size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from rewardlab.report.page import write_report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))
from chromium import MISSING, Chromium
from test_report_browser import large_run

WORK = {
    "filter by reward": "filter = noFilter(); filter.low = '0.5'; applyFilter()",
    "search a word": "filter = noFilter(); filter.words = 'word4321'; applyFilter()",
    "sort by reward": "filter = noFilter(); filter.sort = 'best'; applyFilter()",
    "sort by length": "filter = noFilter(); filter.sort = 'longest'; applyFilter()",
    "scroll": "parts.list.scrollTop += 30000; drawList()",
}


def measure(repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        page = write_report(large_run(Path(folder) / "run"))
        loads = [browser.open(page, "#rollouts") for _ in range(1 + repeats)]
        found = {name: statistics.median(milliseconds(browser, script) for _ in range(repeats)) for name, script in WORK.items()}
        return {
            "rollouts": 10_000, "page_mb": round(page.stat().st_size / 1e6, 1), "load_s": {"first": round(loads[0], 2),
            "later": round(statistics.median(loads[1:]), 2)}, "ms": {k: round(v, 1) for k, v in found.items()},
        }  # fmt: skip


def milliseconds(browser: Chromium, script: str) -> float:
    return browser.run(f"(() => {{ const a = performance.now(); {script}; return performance.now() - a; }})()")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    if MISSING:
        raise SystemExit(MISSING)
    said = json.dumps(measure(args.repeats), indent=1)
    print(said)
    if args.out:
        args.out.write_text(said + "\n")
