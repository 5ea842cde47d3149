"""Let a model write tasks for a shell, keep those that hold when they are run and that a strong model solves (Endless Terminals).

rewardlab data terminals topics.jsonl --model openai:http://127.0.0.1:8000/v1#WRITER --solver openai:URL#STRONG --out tasks.jsonl
rewardlab data terminals written.jsonl --model ../strong --attempts 16 --out tasks.jsonl

A row's prompt is a topic, such as "rotated logs". The writer writes a task and its hidden truth, then files and initial tests, then
tests of the final state. Dropped, with the reason: tasks whose initial tests fail at the start, whose final tests pass there, and
those that no attempt of the solver passes. A row that has tests is a task already, and is validated and attempted only. Killed and
called again, it resumes from OUT.work. Then: rewardlab train endless_terminals --task tasks.jsonl --verifier final_state
"""

from __future__ import annotations

import argparse
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.data.shared import check, exit_code, files, show
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE

__all__ = ["exit_code", "flags", "run", "show"]
HELP = "write, validate and attempt tasks for a shell"
FIELDS = ("prompt_column", "answer_column", "system", "system_column", "overlong", *shared.LOADED, "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    files(parser)
    text = "model that attempts the tasks (default: the writer)"
    parser.add_argument("--solver", metavar="MODEL", default="", help=text)
    shared.number_flag(parser, "attempts", "attempts of a task, 0: none (default 16)", NOT_NEGATIVE, metavar="K", default=16)
    shared.number_flag(parser, "turns", "commands of an attempt at most (default 16)", default=16)
    shared.number_flag(parser, "temperature", "sampling temperature (default 1)", NOT_NEGATIVE, metavar="T", default=1.0)
    shared.number_flag(parser, "batch", "rows per saved batch (default 8)", default=8)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check(args)
    # before torch is imported
    refuse_missing(args.model)
    from rewardlab import api

    return api.terminal_tasks_file(
        args.source, args.out, args.dropped, solver=args.solver, attempts=int(args.attempts), turns=args.turns,
        temperature=args.temperature, batch=args.batch, **shared.given(args, FIELDS),
    )  # fmt: skip
