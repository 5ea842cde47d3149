"""Mask names, dates and numbers in documents (RAMP): problems for training search, made of any text.

rewardlab data ramp wiki.jsonl --out masked.jsonl
rewardlab data ramp wiki.parquet --max-masks 4 --spans-column entities --around 20 --out masked.jsonl

Of each document there is a row for one mask, one for two and so on. It brings what can be searched: the document and those nearest
to it. Then: rewardlab train masksearch --task masked.jsonl --verifier filled_masks.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "mask names, dates and numbers in documents, for training search"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.number_flag(parser, "max_masks", "maximum masks per text (default 4)", default=4)
    shared.number_flag(parser, "around", "distractor documents per text (default 8)", WHOLE, default=8)
    parser.add_argument("--text-column", metavar="NAME", default="text", help="column of the documents (default: text)")
    spans = "column that lists what may be hidden (default: names, dates and numbers, by how they are written)"
    parser.add_argument("--spans-column", metavar="NAME", help=spans)
    shared.number_flag(parser, "seed", "random seed (default 0)", WHOLE, metavar="S", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("max_masks", "around", "text_column", "spans_column", "seed")
    return data.ramp_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
