"""Score the rows of a training run by how well their rewards follow the average learning curve (LIM).

rewardlab data learning train.jsonl --run runs/full --out scored.jsonl
rewardlab data learning train.jsonl --run runs/full --steps-per-epoch 8 --out scored.jsonl

Before: rewardlab train grpo --task train.jsonl --record-every 1 --out runs/full. Then: rewardlab data filter scored.jsonl
--between lim=0.6: --out kept.jsonl, which keeps the rows that LIMR trains on again. Each row gets the columns curve (the share of
right replies in each whole epoch) and lim: 1 for a row that was learnt as the average row was, 0 for one that was always solved,
less for one that never was. Rows that the run did not see in every epoch go.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "score rows by their learning curves in a run (LIM)"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    parser.add_argument("--run", metavar="RUN", required=True, help="the folder of a run on these rows, with --record-every 1")
    parser.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the prompts (default: prompt)")
    shared.number_flag(parser, "steps-per-epoch", "steps of an epoch (default: as often as a row came up)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("prompt_column", "steps_per_epoch")
    return data.learning_file(args.source, args.out, args.run, args.dropped, **{name: getattr(args, name) for name in names})
