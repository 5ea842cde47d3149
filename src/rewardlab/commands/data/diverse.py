"""Keep central and diverse rows: PageRank over similar texts, and a determinantal point process (DPP).

rewardlab data diverse train.jsonl --rows 2000 --out diverse.jsonl
rewardlab data diverse train.csv --rows 2000 --column question --out diverse.csv

Then, for rows of moderate difficulty, as DEPO chooses them: rewardlab data pass-rate, and data curriculum --order target. Texts
are compared by their words, rare ones more. Each row that is kept gets the column influence: how central it is, 1 on average.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.errors import RewardlabError

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "keep central and diverse rows"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.number_flag(parser, "rows", "rows to keep; fewer if the rest is redundant")
    parser.add_argument("--column", metavar="NAME", default="prompt", help="column of the texts (default: prompt)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    if args.rows is None:
        raise RewardlabError("how many rows are to be kept? give --rows N")
    from rewardlab import data

    return data.diverse_file(args.source, args.out, args.rows, args.dropped, column=args.column)
