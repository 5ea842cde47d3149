"""Hide questions in long texts, each at the end of a chain of keys: long-context data made of short questions.

rewardlab data keychain hotpot.jsonl --words 8000 --out long.jsonl
rewardlab data keychain qa.parquet --chains 8 --links 4 --documents-column context --out long.jsonl

Rows hold a question, documents that answer it (a list, or one text) and an answer, as HotpotQA, MuSiQue and 2WikiMQA do. Documents
and questions of other rows are what distracts. Then: rewardlab train loongrl_keychain --task long.jsonl --verifier two_way_match.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "hide questions in long texts behind chains of keys"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.number_flag(parser, "words", "approximate prompt length in words (default 8000)", default=8000)
    shared.number_flag(parser, "chains", "chains per prompt, one of which leads to the question (default 4)", default=4)
    shared.number_flag(parser, "links", "key-value pairs of a chain (default 4)", default=4)
    parser.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the questions (default: prompt)")
    text = "column of the documents (default: documents)"
    parser.add_argument("--documents-column", metavar="NAME", default="documents", help=text)
    shared.number_flag(parser, "seed", "random seed (default 0)", WHOLE, metavar="S", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("words", "chains", "links", "prompt_column", "documents_column", "seed")
    return data.keychain_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
