"""Put code that was run in the place of computations in solutions: episodes with an interpreter, for ReTool's cold start.

rewardlab data code-traces solved.jsonl --model openai:http://127.0.0.1:8000/v1#WRITER --out traces.jsonl
rewardlab data code-traces written.jsonl --trace-column trace --out traces.jsonl

Rows have prompt, answer and a solution in words; the column solution becomes replies and the interpreter's answers, in turn. A
trace is dropped where its code fails, prints another thing than its writer said, or leads to another answer. Killed and called
again, it resumes from OUT.work. Then: rewardlab train retool --task traces.jsonl --model hf:... --sft-steps 100.
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.errors import RewardlabError
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "put code that was run into solutions"
FIELDS = ("prompt_column", "answer_column", "system", "system_column", "overlong", *shared.LOADED, "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.number_flag(parser, "tries", "replies of the writer to a row at most (default 4)", default=4, metavar="K")
    text = "column of the solutions in words (default: solution)"
    parser.add_argument("--solution-column", metavar="NAME", default="solution", help=text)
    text = "column of traces that are written already; no model is asked (default: none)"
    parser.add_argument("--trace-column", metavar="NAME", default="", help=text)
    text = "prompt template of the writer, with {question} and {solution} (default: built in)"
    parser.add_argument("--ask", metavar="TEXT", default="", help=text)
    shared.number_flag(parser, "seconds", "time limit of a trace's code (default 10)", default=10, metavar="S")
    shared.number_flag(parser, "temperature", "sampling temperature (default 1)", NOT_NEGATIVE, metavar="T", default=1.0)
    shared.number_flag(parser, "batch", "rows per saved batch (default 32)", default=32)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    if not args.trace_column:
        # before torch is imported
        refuse_missing(args.model)
        if args.temperature == 0 and args.tries > 1:
            raise RewardlabError("at --temperature 0 all replies to a row are the same: give --tries 1")
    from rewardlab import api

    return api.code_traces_file(
        args.source, args.out, args.dropped, tries=args.tries, solution_column=args.solution_column,
        trace_column=args.trace_column, ask=args.ask, seconds=args.seconds, temperature=args.temperature, batch=args.batch,
        **shared.given(args, FIELDS),
    )  # fmt: skip
