"""Order rows by difficulty; training keeps the order with --order file.

rewardlab data curriculum rated.jsonl --out ordered.jsonl
rewardlab data curriculum rated.jsonl --order bands --stages 3 --out ordered.jsonl
rewardlab data curriculum rated.jsonl --order target --target 0.5 --width 0.2 --rows 2000 --out ordered.jsonl

Then: rewardlab train grpo --task ordered.jsonl --order file. The orders are easy-first; hard-first; bands: stages from easy to
hard, each shuffled, with its number in the column `stage`; and target: sampled by weights exp(-(p - target)^2 / (2 width^2)), in
the column `weight`. Rows without a number go.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.data.tools import OF_ORDERS, ORDERS, check_order
from rewardlab.errors import unknown
from rewardlab.settings.domain import ABOVE_ZERO, NUMBER, WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "order rows, or divide them into stages, by difficulty"
HARD = ("low", "high")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    parser.add_argument("--by", metavar="NAME", default="pass_rate", help="column of the difficulty (default: pass_rate)")
    text = f"{', '.join(ORDERS[:-1])} or {ORDERS[-1]} (default: {ORDERS[0]})"
    parser.add_argument("--order", metavar="ORDER", default=ORDERS[0], help=text)
    parser.add_argument(
        "--hard", metavar="WHICH", help="low or high: which numbers are hard (default: low for pass_rate, else high)"
    )
    shared.number_flag(parser, "stages", "number of difficulty bands, of nearly equal size")
    text = "boundaries between bands, in place of --stages"
    parser.add_argument("--cuts", metavar="X,X", type=numbers, help=text)
    shared.number_flag(parser, "target", "difficulty preferred by target (default 0.5)", NUMBER, metavar="P")
    shared.number_flag(parser, "width", "standard deviation of target (default 0.2)", ABOVE_ZERO, metavar="W")
    shared.number_flag(parser, "rows", "keep only the first rows in this order")
    shared.number_flag(parser, "seed", "random seed, for ties and for target (default 0)", WHOLE, metavar="S", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    if args.hard not in (None, *HARD):
        raise unknown("value of --hard", args.hard, HARD)
    check_order(args.order, {name: getattr(args, name) for name in OF_ORDERS}, flag="--")
    from rewardlab import data

    names = ("by", "order", "hard", "stages", "target", "width", "rows", "seed")
    settings = {name: getattr(args, name) for name in names}
    return data.curriculum_file(args.source, args.out, args.dropped, cuts=args.cuts or (), **settings)


def numbers(text: str) -> tuple[float, ...]:
    """The values of --cuts, ascending."""
    return tuple(sorted({float(shared.read("--cuts", NUMBER, part.strip())) for part in text.split(",")}))
