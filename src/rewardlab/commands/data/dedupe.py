"""Remove duplicates, and rows of a test set.

rewardlab data dedupe train.jsonl --out clean.jsonl
rewardlab data dedupe train.jsonl --against test.jsonl --column question --out clean.jsonl

Two texts are the same if they differ in case, spacing and punctuation alone; nearly the same if the Jaccard similarity of their
n-grams of words is at least --similarity. A row is in a test set if it shares --overlap words in a row with one of its texts, or
holds the whole of a shorter one. Each row that goes names the row that it equals. System messages are not compared, nor an
instruction of eight words or more with which nine in ten texts begin or end.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.data import duplicates
from rewardlab.settings.domain import POSITIVE_SHARE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "remove duplicates, and rows of a test set"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "a test set to decontaminate against; may be repeated"
    parser.add_argument("--against", action="append", default=[], metavar="FILE", help=text)
    parser.add_argument("--column", metavar="NAME", default="prompt", help="column of the texts (default: prompt)")
    text = "column of the answers: worked ones are compared with those of the test set too (default: answer)"
    parser.add_argument("--answer-column", metavar="NAME", help=text)
    text = f"similarity threshold of near-duplicates, 1 for exact duplicates only (default {duplicates.SIMILARITY})"
    shared.number_flag(parser, "similarity", text, POSITIVE_SHARE, metavar="SHARE", default=duplicates.SIMILARITY)
    shared.number_flag(parser, "ngram", f"length of n-grams in words (default {duplicates.NGRAM})", default=duplicates.NGRAM)
    text = f"n-gram length of overlap with a test set (default {duplicates.OVERLAP})"
    shared.number_flag(parser, "overlap", text, default=duplicates.OVERLAP)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("against", "column", "answer_column", "similarity", "ngram", "overlap")
    return data.dedupe_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
