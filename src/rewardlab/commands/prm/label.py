"""Label the steps of solutions, sampled by a model or read from a file.

rewardlab prm label --task arithmetic --by monte-carlo --rollouts 8 --out labels.jsonl
rewardlab prm label --task train.jsonl --model runs/mine --by binary-search --samples 4 --out labels.jsonl
rewardlab prm label --solutions processbench.json --by judge --judge smollm2 --out judged.jsonl
rewardlab prm label --task train.jsonl --model runs/mine --by consensus --rollouts 8 --judge ORG/NAME --out kept.jsonl
rewardlab prm label --solutions solved.jsonl --by tool --format math-shepherd --out checked.jsonl
rewardlab prm label --solutions replies.jsonl --model ORG/NAME --splitter sentence --out labels.jsonl

Solutions are in one of the formats below, or whole replies in a column `completion` or `response`, which --splitter cuts.

By monte-carlo a step's label is the share of sampled continuations that come out right; by binary-search it is 1 before the first
step after which none does, and 0 from there on. By judge, a model names the first wrong step; by consensus, solutions have labels
only where the judge names the first step after which no continuation comes out right, and `kept` is their share; by tool, the
equations in a step are checked; by reference, the steps are compared with the task's own. A step of which nothing is known has the
label null.

With --workers ray, processes of a Ray cluster sample and label; each loads the models, and the labels are the same.

Rows are written as they are done. Killed and called again with the same flags, it resumes where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.data.files import check_source
from rewardlab.data.step_formats import FORMATS, WRITTEN
from rewardlab.errors import RewardlabError
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, SHARE

HELP = "label the steps of sampled or given solutions"
FIELDS = ("task", "prompt_column", "answer_column", "system", "system_column", "overlong", *shared.LOADED, "seed")
BY = ("monte-carlo", "binary-search", "judge", "consensus", "tool", "reference")
SHOWN = 10


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", required=True, help="JSON lines; rows are appended as they are done")
    parser.add_argument("--by", metavar="HOW", default=BY[0], help=f"{', '.join(BY)} (default: {BY[0]})")
    parser.add_argument("--solutions", metavar="FILE", help=f"solutions to label, by their columns: {', '.join(FORMATS)}")
    shared.number_flag(parser, "problems", "problems of the task to solve (default 100)")
    shared.number_flag(parser, "samples", "solutions of each problem (default 4)")
    shared.number_flag(parser, "rollouts", "continuations of each step (default 4)", metavar="K")
    text = (
        "step splitter, of replies that are sampled or whole in a file: newline, paragraph (up to a blank line), sentence, or tag "
        "(up to </tag>) (default: newline)"
    )
    parser.add_argument("--splitter", metavar="NAME", help=text)
    text = "sampling temperature of solutions and continuations (default 1)"
    shared.number_flag(parser, "temperature", text, NOT_NEGATIVE, metavar="T")
    judges = parser.add_argument_group("by a judge, or by consensus with one")
    judges.add_argument("--judge", metavar="MODEL", help="the judge (default: the model itself)")
    text = "first: name the first wrong step; each: judge every step (default: first)"
    judges.add_argument("--judge-form", choices=("first", "each"), help=text)
    shared.number_flag(judges, "votes", "judge samples, decided by majority (default 1)")
    shared.number_flag(judges, "judge_tokens", "longest reply of the judge in tokens (default 1024)")
    shared.workers_flag(parser)
    written = parser.add_argument_group("what is written")
    written.add_argument(
        "--format", metavar="NAME", help=f"{', '.join(WRITTEN)} (default: rewardlab, which holds labels from 0 to 1)"
    )
    text = "threshold for a right step, in binary formats (default 0.5)"
    shared.number_flag(written, "threshold", text, SHARE, metavar="LABEL")
    shared.number_flag(written, "batch", "problems, or solutions of a file, per saved batch (default 16)")
    shared.config_flags(parser, FIELDS)


OWN = (
    "by", "problems", "samples", "rollouts", "splitter", "temperature", "judge_form", "votes", "judge_tokens", "format",
    "threshold", "batch",
)  # fmt: skip


def run(args: argparse.Namespace) -> dict[str, Any]:
    # before torch is imported
    refuse_missing(args.model)
    refuse_missing(args.judge)
    if args.solutions is None:
        shared.require_task(args)
    else:
        check_source(args.solutions, "--solutions")
        if args.samples is not None:
            raise RewardlabError("--samples has no effect on --solutions, which are labelled as they are")
    from rewardlab import api

    given = {name: value for name in (*OWN, "workers") if (value := getattr(args, name)) is not None}
    return api.label_file(args.out, solutions=args.solutions, judge=args.judge, **given, **shared.given(args, FIELDS))


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    broken = document.get("broken_lines", ())
    facts({name: value for name, value in document.items() if name != "broken_lines" and value is not None})
    for line in broken[:SHOWN]:
        print(f"broken: {line}")
    if len(broken) > SHOWN:
        print(f"and {len(broken) - SHOWN} more: --json has all of them")


def exit_code(document: Mapping[str, Any]) -> int:
    # a script must hear of lines that could not be read
    return 1 if document.get("broken_lines") else 0
