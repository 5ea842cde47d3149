"""Name the decisive values of each record, by an expert fitted to the training rows (EAG-RL).

rewardlab data salient train.jsonl --features age,bp,wbc --yes high --out train.salient.jsonl
rewardlab data salient train.csv --features age,bp,wbc --yes 1 --k 3 --answer-column died --also test.csv --out test.salient.csv

Each feature is a column with a number. The expert is a logistic regression; rows get the columns features and salient, its k most
important values. Then: rewardlab train eag_rl --task train.salient.jsonl. With --also, another file's rows get what the expert of
the training rows goes by in them; nothing is learnt from these.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "name the decisive values of each row, by a fitted expert"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    parser.add_argument("--features", metavar="NAMES", required=True, help="columns of numbers, with commas between them")
    parser.add_argument("--yes", metavar="ANSWER", required=True, help="the answer whose chance is predicted; any other is no")
    shared.number_flag(parser, "k", "decisive values per row (default 2)", default=2)
    parser.add_argument("--answer-column", metavar="NAME", default="answer", help="column of the answers (default: answer)")
    parser.add_argument("--also", metavar="FILE", help="rows to label with the expert, in place of the rows it is fitted to")


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    features = [name.strip() for name in args.features.split(",") if name.strip()]
    names = ("yes", "k", "answer_column", "also")
    settings = {name: getattr(args, name) for name in names}
    return data.salient_file(args.source, args.out, args.dropped, features=features, **settings)
