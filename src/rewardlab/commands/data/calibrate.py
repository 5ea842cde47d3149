"""Calibrate the scores of pairs by the Elo ratings of the models that wrote the replies, and relabel the pairs.

rewardlab data calibrate pairs.jsonl --model runs/rm --elo elo.csv --out calibrated.jsonl
rewardlab data calibrate scored.jsonl --out calibrated.jsonl

Each pair (columns prompt, chosen, rejected) says who wrote its replies in chosen_model and rejected_model. The scores are those of
--model, or the columns chosen_score and rejected_score; the ratings those of --elo, rows with columns model and elo, or the columns
chosen_elo and rejected_elo. Models get offsets by which they win as often as their ratings say; the scores with these offsets are
written, and replies change places where the other one has the higher score. How far win rates were from the ratings, before and
afterwards, is printed as the mismatch degree of each model. `rewardlab train bradley_terry` learns from the result.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import ABOVE_ZERO

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "calibrate scores by the Elo ratings of who wrote the replies"
FIELDS = ("device", "dtype")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "reward model: a run, a folder or a model of the hub (default: the columns chosen_score and rejected_score)"
    parser.add_argument("--model", metavar="MODEL", help=text)
    text = "ratings: rows with columns model and elo (default: the columns chosen_elo and rejected_elo)"
    parser.add_argument("--elo", metavar="TABLE", help=text)
    text = "temperature of the win rates between scores (default 0.1)"
    parser.add_argument(
        "--temperature", type=functools.partial(shared.read, "--temperature", ABOVE_ZERO), metavar="T", default=0.1, help=text
    )
    parser.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the prompts (default: prompt)")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import api

    return api.calibrate_file(
        args.source, args.out, args.dropped, model=args.model, elo=args.elo, temperature=args.temperature,
        prompt_column=args.prompt_column, **shared.given(args, FIELDS),
    )  # fmt: skip
