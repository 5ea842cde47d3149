"""Rewrite the report of a run, or compare several runs on one page: curves, and rollouts token by token. It opens offline.

rewardlab report runs/mine
rewardlab report runs/grpo runs/rloo runs/dapo --out comparison.html
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "write a run's report again, or compare several runs"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, nargs="+", metavar="RUN", help="folder of a run; several are compared")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: RUN/report.html; comparison.html of several)")
    text = "hold Plotly's library (5 MB) in a page within a comparison too, which would load it from there"
    parser.add_argument("--self-contained", action="store_true", help=text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.errors import RewardlabError
    from rewardlab.report.page import write_comparison, write_report
    from rewardlab.util.files import check_page

    for folder in args.run:
        if not folder.is_dir():
            raise RewardlabError(f"there is no run in {folder}; give the folder that `rewardlab train` wrote")
        if (folder / "plan.json").exists():
            raise RewardlabError(
                f"{folder} holds a comparison, whose page is compare.html; for its runs: rewardlab report {folder}/runs/*"
            )
    one = len(args.run) == 1
    out = args.out or (args.run[0] / "report.html" if one else Path("comparison.html"))
    if not out.parent.is_dir():
        raise RewardlabError(f"there is no folder {out.parent} to write {out.name} in")
    check_page(out)
    return {
        "report": str(
            write_report(args.run[0], out, args.self_contained) if one else write_comparison(args.run, out, args.self_contained)
        )
    }


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import lines

    lines(document["report"], indent=0)
