"""Export a task as a package that `verifiers` loads, so that prime-rl and others train on it: rows, verifier, environment.

  rewardlab export-env arithmetic --out arithmetic-env
  rewardlab export-env babyai:GoToLocal --out babyai-env --rows 500
  rewardlab export-env mine.jsonl --prompt-column question --out mine-env
  rewardlab export-env mine.jsonl --tools mine.py:search --turns 4 --out mine-env

Then `pip install ./arithmetic-env`, and `vf.load_environment("arithmetic")`, or, from verifiers 0.4 on, the taskset `arithmetic`.
The package needs rewardlab, which judges and answers, and files of --tools, --corpus or --env where they are now. See
docs/ENVIRONMENTS.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.runs.config import COLUMNS

HELP = "export a task as an environment of the package verifiers"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task, or a file of your own problems")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder to write")
    shared.number_flag(parser, "rows", "training problems, at most (default 1000)", default=1000)
    shared.number_flag(parser, "test_rows", "held-out problems, at most (default 200)", default=200)
    shared.environment_flags(parser)
    shared.config_flags(parser, COLUMNS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    shared.require_task(args)

    from rewardlab import api

    task: Any = shared.load_task(args) if any(getattr(args, name) is not None for name in COLUMNS) else args.task
    return api.export_environment(task, args.out, rows=args.rows, test_rows=args.test_rows, **shared.load_environment(args))


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    facts({name: value for name, value in document.items() if value is not None})
    # a name without a folder is looked up in the package index, where it may be anyone's
    print(f"pip install {quote(str(Path(document['out']).absolute()))}")
