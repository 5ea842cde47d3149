"""Find rows that a model has probably seen: it completes the first part of a prompt word by word, and answers all the same.

rewardlab data contamination test.jsonl --model hf:Qwen/Qwen2.5-Math-7B --out probed.jsonl
rewardlab data contamination fresh.jsonl --model hf:Qwen/Qwen2.5-Math-7B --out probed_fresh.jsonl
rewardlab data contamination test.jsonl --model path/to/model --shown 0.4 --keep-texts --out probed.jsonl

Each row gets the columns completed (whether the greedy continuation of the first part is the rest), rouge_l (how alike the two
are) and answered (whether the right answer follows, though part of the problem was hidden). Text is continued without a chat
template. What it says depends on the rows: forms that repeat are completed by models that never saw them. So measure rows that
are newer than the model too, and compare: Qwen2.5-Math-7B completes 54.6% of MATH-500, and none of a newer benchmark (Wu et al.
2025). Rows that were seen tell little of what a method teaches; leave them out by rewardlab data filter --between completed=:0.5.

Killed and called again, it resumes from OUT.work.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import POSITIVE_SHARE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "find rows that a model has probably seen before"
FIELDS = ("prompt_column", "answer_column", "overlong", *shared.LOADED, "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.reward_flag(parser, "to judge answers by (default: final_answer)")
    text = "share of each prompt that the model sees (default 0.6)"
    shown = functools.partial(shared.read, "--shown", POSITIVE_SHARE)
    parser.add_argument("--shown", type=shown, metavar="SHARE", default=0.6, help=text)
    shared.number_flag(parser, "least", "words that are hidden, where a completion counts (default 5)", default=5)
    shared.number_flag(parser, "batch", "problems per saved batch (default 32)", default=32)
    parser.add_argument("--keep-texts", action="store_true", help="add a column with the continuations")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    # before torch is imported
    refuse_missing(args.model)
    from rewardlab import api

    return api.contamination_file(
        args.source, args.out, args.dropped, shown=args.shown, least=args.least, reward=shared.load_reward(args),
        batch=args.batch, keep_texts=args.keep_texts, **shared.given(args, FIELDS),
    )  # fmt: skip
