"""Generate unit tests of programs with a model, for coderm_8b where problems have no tests.

rewardlab data tests problems.jsonl --model openai:http://127.0.0.1:8000/v1#CodeRM-8B --tests 16 --out tested.jsonl
rewardlab data tests problems.jsonl --model ../my-model --program-column draft --out tested.jsonl

Each row gets the column generated: different tests, pairs [input, output] where its answer holds io, else Python with one assert.
Replies without a test that can be read are left out; whether a test is right nobody knows. Killed and called again, it resumes from
OUT.work. Then: rewardlab search coderm_8b --task tested.jsonl --model ../my-model.
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
HELP = "generate unit tests of programs with a model"
FIELDS = ("prompt_column", "answer_column", "system", "system_column", "overlong", *shared.LOADED, "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    shared.number_flag(parser, "tests", "tests per problem (default 16)", default=16, metavar="K")
    text = "column with a program in the prompt, right or wrong (default: none)"
    parser.add_argument("--program-column", metavar="NAME", default="", help=text)
    text = "prompt template of the test writer, with {question} and {program} (default: built in)"
    parser.add_argument("--ask", metavar="TEXT", default="", help=text)
    shared.number_flag(parser, "temperature", "sampling temperature (default 1)", NOT_NEGATIVE, metavar="T", default=1.0)
    shared.number_flag(parser, "batch", "problems per saved batch (default 32)", default=32)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    # before torch is imported
    refuse_missing(args.model)
    if args.temperature == 0 and args.tests > 1:
        raise RewardlabError("at --temperature 0 all replies to a problem are the same: give --tests 1")
    from rewardlab import api

    return api.written_tests_file(
        args.source, args.out, args.dropped, tests=args.tests, program_column=args.program_column, ask=args.ask,
        temperature=args.temperature, batch=args.batch, **shared.given(args, FIELDS),
    )  # fmt: skip
