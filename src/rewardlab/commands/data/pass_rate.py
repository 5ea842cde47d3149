"""Measure a model's pass rate on each problem: k samples, judged by a verifier or a reward.

rewardlab data pass-rate train.jsonl --model smollm2 --samples 8 --out rated.jsonl
rewardlab data pass-rate train.jsonl --model runs/mine --reward math --keep-replies --out rated.jsonl

Each row gets the columns pass_rate (the share accepted, of the replies with a verdict), scores (the reward of each; null: no
verdict) and tokens, and with --keep-replies the replies, of which `rewardlab data pairs` makes pairs. Killed and called again, it
resumes from OUT.work, which it removes at the end, and gives what it would have given at once.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.errors import RewardlabError
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, NUMBER

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "measure a model's pass rate on each problem"
FIELDS = ("prompt_column", "answer_column", "system", "system_column", "overlong", *shared.LOADED, "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.reward_flag(parser, "to judge by (default: final_answer, which compares the answer in the reply with the gold one)")
    shared.number_flag(parser, "samples", "replies to each problem (default 8)", default=8, metavar="K")
    text = "minimum reward of an accepted reply (default 1)"
    shared.number_flag(parser, "accept", text, NUMBER, metavar="REWARD", default=1.0)
    shared.number_flag(parser, "temperature", "sampling temperature (default 1)", NOT_NEGATIVE, metavar="T", default=1.0)
    shared.number_flag(parser, "batch", "problems per saved batch (default 32)", default=32)
    parser.add_argument("--keep-replies", action="store_true", help="add a column with the replies")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    # before torch is imported
    refuse_missing(args.model)
    if args.temperature == 0 and args.samples > 1:
        raise RewardlabError("at --temperature 0 all replies to a problem are the same: give --samples 1")
    from rewardlab import api

    return api.pass_rate_file(
        args.source, args.out, args.dropped, reward=shared.load_reward(args), samples=args.samples, accept=args.accept,
        temperature=args.temperature, batch=args.batch, keep_replies=args.keep_replies, **shared.given(args, FIELDS),
    )  # fmt: skip
