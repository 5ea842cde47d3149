"""Measure how strong each preference is by several reward models, and flip the labels that they contradict most.

rewardlab data strength pairs.jsonl --models runs/rm1,runs/rm2,runs/rm3 --out strong.jsonl
rewardlab data strength pairs.jsonl --models model:OWNER/NAME,runs/mine --flip 0.1 --labels margins --out flipped.jsonl

Each pair (columns prompt, chosen, rejected) gets the columns strength, the mean over the models of r(chosen) - r(rejected), and
strength_std, its standard deviation over them. Below 0 the label is probably wrong, near 0 it is ambiguous: `rewardlab data filter
--between strength=0.1:` leaves such pairs out. With --labels, `rewardlab train bradley_terry --labels` reads the result.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import SHARE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "measure how strong preferences are by several reward models"
FIELDS = ("device", "dtype")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "reward models, separated by commas: runs, folders or models of the hub, any sequence classifier"
    parser.add_argument("--models", metavar="A,B", required=True, help=text)
    text = "share of the pairs to flip, those of the lowest strength below 0 (default 0); then a column flipped says which"
    parser.add_argument("--flip", type=functools.partial(shared.read, "--flip", SHARE), metavar="SHARE", default=0.0, help=text)
    text = "add chosen_score and rejected_score: margins, the strength; votes, how many models prefer each reply"
    parser.add_argument("--labels", choices=("margins", "votes"), help=text)
    parser.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the prompts (default: prompt)")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import api

    return api.strength_file(
        args.source, args.out, args.dropped, models=[name for name in args.models.split(",") if name], flip=args.flip,
        labels=args.labels, prompt_column=args.prompt_column, **shared.given(args, FIELDS),
    )  # fmt: skip
