"""Write a run's policy as an ordinary Hugging Face checkpoint: the best by held-out measure, or with --last the last.

rewardlab export runs/mine mine-hf
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "write a run's policy as an ordinary Hugging Face checkpoint"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("out", type=Path, metavar="DIR", help="folder to write")
    parser.add_argument("--last", action="store_true", help="the last policy instead of the best")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.export(args.run, args.out, last=args.last)


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts

    facts({name: value for name, value in document.items() if name != "warning"})
    if "warning" in document:
        print(f"warning: {document['warning']}", file=sys.stderr)
