"""Warm up the embedded policy, train it with GRPO against an exact verifier, and show the gain on held-out problems."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "train a small policy and write its report, in minutes"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the run (default: runs/demo, runs/demo-2, ...)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.errors import RewardlabError

    # before torch is imported, and a policy warmed up
    if args.out and args.out.exists() and not args.out.is_dir():
        raise RewardlabError(f"--out {args.out} is a file; give the name of a new folder")

    from rewardlab.api.demo import demo

    result = demo(args.out)
    return {**result.summary, "report": str(result.out / "report.html")}


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import outcome

    outcome(document)
