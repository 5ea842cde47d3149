"""Keep the largest set of dissimilar rows: a maximum clique, as CodeBoost chooses code.

rewardlab data clique snippets.jsonl --out unlike.jsonl
rewardlab data clique train.csv --column prompt --threshold 0.7 --out unlike.csv

Texts are compared by their words and signs, rare ones more. For copies word by word: rewardlab data dedupe.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import POSITIVE_SHARE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "keep the largest set of dissimilar rows"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "similarity above which rows count as alike (default: 0.5)"
    shared.number_flag(parser, "threshold", text, POSITIVE_SHARE, metavar="SHARE", default=0.5)
    parser.add_argument("--column", metavar="NAME", default="code", help="column of the texts (default: code)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    return data.clique_file(args.source, args.out, args.dropped, threshold=args.threshold, column=args.column)
