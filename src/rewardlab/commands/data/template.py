"""Rewrite questions as multiple choice or as open ones, and drop those without a verifiable answer.

rewardlab data template mmlu.jsonl --form open --out open.jsonl
rewardlab data template qa.parquet --form both --options-column choices --out both.jsonl

An open question has its options taken away, and the right one's text for an answer, of at most --words words. Rows get the columns
form and verifier. Then, as Nemotron-CrossThink goes on: data pass-rate and data filter for what is not too easy, data mix for a
blend, and rewardlab train nemotron_crossthink --task blend.jsonl --verifier named_verifier.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.data.templates import FORMS

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "rewrite questions as multiple choice, or as open ones"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = f"{', '.join(FORMS[:-1])} or {FORMS[-1]} (default: open)"
    parser.add_argument("--form", metavar="FORM", default="open", help=text)
    shared.number_flag(parser, "words", "maximum words of an open answer (default 10)", default=10)
    for name, what in (("prompt", "questions"), ("answer", "answers"), ("options", "options")):
        text = f"column of the {what} (default: {name})"
        parser.add_argument(f"--{name}-column", metavar="NAME", default=name, help=text)
    text = "name of the verifier of open answers (default: math)"
    parser.add_argument("--verifier", metavar="NAME", default="math", help=text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("form", "words", "prompt_column", "answer_column", "options_column", "verifier")
    return data.template_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
