"""Mix several files by weight into one, shuffled, with the name of its file in each row's column `source`.

rewardlab data mix math.jsonl=2 general.jsonl=1 --out mixed.jsonl
rewardlab data mix math.jsonl=1 code.csv=1 --rows 10000 --repeat 2 --rename question=prompt --seed 1 --out mixed.parquet

A file without a weight has the weight 1. Without --rows, the mixture is as large as it can be. A file gives each of its rows at
most --repeat times; one that is too small for its part gives less, and no other fills in. A column that a file lacks is null in its
rows.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, pairs_of, show
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import ABOVE_ZERO, WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "mix several files by weight"


def flags(parser: argparse.ArgumentParser) -> None:
    text = "files and their weights; JSON lines, .csv or .parquet"
    parser.add_argument("sources", metavar="FILE=WEIGHT", nargs="+", help=text)
    files(parser, None)
    shared.number_flag(parser, "rows", "rows of the mixture (default: as many as possible)")
    text = "maximum passes over a file (default 1)"
    shared.number_flag(parser, "repeat", text, ABOVE_ZERO, metavar="TIMES", default=1.0)
    shared.number_flag(parser, "seed", "random seed (default 0)", WHOLE, metavar="S", default=0)
    text = "column for the name of a row's file (default: source)"
    parser.add_argument("--source-column", metavar="NAME", default="source", help=text)
    text = "rename a column in every file that has it; may be repeated"
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help=text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    weights: dict[str, float] = {}
    for word in args.sources:
        name, weight = _weighted(word)
        if name in weights:
            raise RewardlabError(f"{name} is given twice: raise its weight, or --repeat")
        weights[name] = weight
    renamed = pairs_of("--rename", args.rename, "OLD=NEW")
    names = ("rows", "repeat", "seed", "source_column")
    settings = {name: getattr(args, name) for name in names}
    return data.mix_files(weights, args.out, args.dropped, rename=renamed, **settings)


def _weighted(word: str) -> tuple[str, float]:
    """A file and its weight; a name with an equals sign in it is a file, unless a number follows."""
    name, _, weight = word.rpartition("=")
    try:
        return (name, float(weight)) if name else (word, 1.0)
    except ValueError:
        return word, 1.0
