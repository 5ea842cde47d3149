"""Write a run's report.html again: curves, and sample rollouts coloured by credit. It opens offline.

rewardlab report runs/mine
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "write a run's report.html again"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.core import RewardlabError
    from rewardlab.engine.report import write_report

    if not args.run.is_dir():
        raise RewardlabError(f"there is no run in {args.run}; give the folder that `rewardlab train` wrote")
    return {"report": str(write_report(args.run))}


def show(document: Mapping[str, Any]) -> None:
    from .tables import lines

    lines(document["report"], indent=0)
