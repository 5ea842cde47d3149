"""Filter rows by answers, numbers and lengths, and by a reward of the row's own reply.

rewardlab data filter rated.jsonl --between pass_rate=0.1:0.9 --out kept.jsonl
rewardlab data filter pairs.jsonl --between rejected_score=25%: --between gap=:50% --length rejected=200: --out kept.jsonl
rewardlab data filter train.jsonl --reward math --reply-column solution --out checked.jsonl

Bounds are LOW:HIGH, LOW: or :HIGH, both included; with a percent sign they are quantiles of the file's numbers. Of several rules,
the first that a row breaks is its reason.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, pairs_of, show
from rewardlab.errors import RewardlabError

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "filter rows by numbers, lengths and answers"
FORM = "COLUMN=LOW:HIGH"


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    for flag, what in (("between", "numbers of a column"), ("length", "lengths, in characters, of the texts of a column")):
        text = f"bounds of the {what}; may be given several times"
        parser.add_argument(f"--{flag}", action="append", default=[], metavar=FORM, help=text)
    parser.add_argument("--pass-rate", metavar="LOW:HIGH", help="the same as --between pass_rate=LOW:HIGH")
    text = "column of the gold answers; if present, rows without one are dropped (default: answer)"
    parser.add_argument("--answer-column", metavar="NAME", help=text)
    judged = parser.add_argument_group("the row's own reply")
    shared.reward_flag(judged, "that judges it, such as math")
    text = "column of the reply judged by --reward (default: the answers, to see whether the verifier can read them)"
    judged.add_argument("--reply-column", metavar="NAME", help=text)
    judged.add_argument("--accept", metavar="LOW:HIGH", default="1:", help="bounds of its reward (default 1:)")
    judged.add_argument("--prompt-column", metavar="NAME", default="prompt", help="column of the prompts (default: prompt)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    if not args.reward and (beside := {"--reply-column", "--accept", "--prompt-column"} & args.flags_given):
        raise RewardlabError(f"{min(beside)} is for --reward, which is not given")
    from rewardlab import data

    between = pairs_of("--between", args.between, FORM) | ({"pass_rate": args.pass_rate} if args.pass_rate else {})
    length = pairs_of("--length", args.length, FORM)
    return data.filter_file(
        args.source, args.out, args.dropped, between=between, length=length, answer_column=args.answer_column, judge=_judge(args)
    )


def _judge(args: argparse.Namespace) -> Any:
    if not args.reward:
        return None
    # imports torch, which the other rules do without
    from rewardlab import api

    columns = {"prompt_column": args.prompt_column, "answer_column": args.answer_column or "answer"}
    reply = args.answer_column if args.reply_column is None else args.reply_column
    return api.own_answers(shared.load_reward(args), reply, args.accept, **columns)
