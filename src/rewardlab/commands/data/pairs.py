"""Make preference pairs of scored replies, for dpo and other preference methods.

rewardlab data pairs rated.jsonl --out pairs.jsonl
rewardlab data pairs judged.csv --choose all --gap 0.5 --score-column reward --out pairs.parquet

A row holds a prompt with lists of replies and scores, as `data pass-rate --keep-replies` writes them; or one reply and its score,
as `verify` writes them: then rows with equal prompts go together. Each pair gets the columns chosen, rejected, chosen_score,
rejected_score and gap, and keeps the prompt's other columns.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.data.pairing import CHOICES
from rewardlab.settings.domain import NOT_NEGATIVE, WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "make preference pairs of scored replies"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "; ".join(f"{name}: {about}" for name, about in CHOICES.items())
    parser.add_argument("--choose", metavar="HOW", default="best-worst", help=f"{text} (default: best-worst)")
    shared.number_flag(
        parser, "gap", "least difference of the two scores (default: any)", NOT_NEGATIVE, metavar="SCORE", default=0.0
    )
    parser.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the prompts (default: prompt)")
    parser.add_argument("--reply-column", metavar="NAME", help="column of the replies (default: replies, response, ...)")
    parser.add_argument("--score-column", metavar="NAME", help="column of the scores (default: scores, score, reward or correct)")
    shared.number_flag(parser, "seed", "random seed (default 0)", WHOLE, metavar="S", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("choose", "gap", "prompt_column", "reply_column", "score_column", "seed")
    return data.pairs_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
