"""Write labelled solutions in another format.

rewardlab prm convert phase2_train.jsonl labels.jsonl
rewardlab prm convert labels.jsonl shepherd.jsonl --format math-shepherd --threshold 0.01

Read are, recognised by their columns: rewardlab, prm800k, math-shepherd, processbench, prmbench and trl. Lines that cannot be read,
and solutions that the format cannot hold, are left out and counted; exit code 1 says that lines were broken.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.prm.label import exit_code, show
from rewardlab.data.files import STREAM, check_out, check_source
from rewardlab.data.step_formats import AUTO, THRESHOLD, WRITTEN, read_solutions, write_solutions
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import SHARE
from rewardlab.text.splitters import of_text as splitter_of_text

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "write labelled solutions in another format"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="JSON lines, .csv or .parquet, or a .json list; - for stdin")
    parser.add_argument("out", metavar="OUT", help="JSON lines")
    parser.add_argument("--format", metavar="NAME", default="rewardlab", help=f"{', '.join(WRITTEN)} (default: rewardlab)")
    parser.add_argument("--from", dest="read_as", metavar="NAME", default=AUTO, help="format of IN (default: by its columns)")
    parser.add_argument(
        "--alternatives", action="store_true", help="include the alternative steps of PRM800K, and PRMBench's originals"
    )
    text = "where the steps of whole replies end: newline (default), paragraph, sentence or tag"
    parser.add_argument("--splitter", metavar="NAME", default="newline", help=text)
    text = f"threshold for a right step, in binary formats (default {THRESHOLD})"
    shared.number_flag(parser, "threshold", text, SHARE, metavar="LABEL", default=THRESHOLD)


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.out == STREAM:
        raise RewardlabError("give OUT a file: what was done is printed to stdout")
    check_source(args.source, "IN")
    check_out(args.out)
    splitter_of_text(args.splitter)
    broken: list[str] = []
    unfit: list[str] = []
    passed_over: list[int] = []
    # read whole before anything is written, so that OUT may be IN
    how = {"splitter": args.splitter, "alternatives": args.alternatives}
    found = list(read_solutions(args.source, args.read_as, **how, broken=broken, passed_over=passed_over))
    rows = write_solutions(args.out, found, args.format, threshold=args.threshold, unfit=unfit)
    why = {"unfit_because": unfit[0]} if unfit else {}
    if more := sum(passed_over):
        why["left_out"] = f"{more:,} alternatives: --alternatives takes them"
    return {"rows": rows, "steps": sum(len(one.steps) for one in found), "unfit": len(unfit), **why, "out": args.out} | (
        {"broken_lines": broken} if broken else {}
    )
