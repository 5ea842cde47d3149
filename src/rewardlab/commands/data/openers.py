"""Add openers to replies with labels: first sentences that answer nothing, labelled no, for judges of answers (Master-RM).

rewardlab data openers judged.jsonl --out judged.openers.jsonl
rewardlab data openers judged.parquet --from-column worked --added 0.125 --seed 1 --out judged.openers.jsonl

Rows hold a prompt, an answer as the reference, a reply and its label. Openers state no answer, do not hold the reference, and are
none of the texts that judges are tried with. Then: rewardlab train master_rm --added 0 --task judged.openers.jsonl, or any trainer.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.settings.domain import ABOVE_ZERO, WHOLE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "add first sentences that answer nothing, labelled no, to judged replies"
COLUMNS = {
    "reply": "replies", "answer": "right answers, which no opener may hold", "label": "labels: yes and no, 1 and 0, true and false",
}  # fmt: skip


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "openers for each row (default 0.125: the paper's 20,000 for 160,000)"
    shared.number_flag(parser, "added", text, ABOVE_ZERO, metavar="A", default=0.125)
    for name, what in COLUMNS.items():
        parser.add_argument(f"--{name}-column", metavar="NAME", default=name, help=f"column of the {what} (default: {name})")
    text = "column of step-by-step replies to cut, such as another model's (default: the replies themselves)"
    parser.add_argument("--from-column", metavar="NAME", default="", help=text)
    shared.number_flag(parser, "seed", "random seed (default 0)", WHOLE, metavar="S", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    from rewardlab import data

    names = ("added", "reply_column", "from_column", "answer_column", "label_column", "seed")
    return data.openers_file(args.source, args.out, args.dropped, **{name: getattr(args, name) for name in names})
