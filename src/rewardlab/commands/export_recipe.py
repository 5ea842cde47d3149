"""Export a method to another engine: configuration, reward, credit, loss, data, and a start script.

  rewardlab export-recipe grpo --engine verl --task problems.jsonl --out grpo-verl
  rewardlab export-recipe dapo --engine verl --task arithmetic --steps 200 --n 16 --reward mine.py:score
  rewardlab export-recipe prime --engine verl                # why not, in one line
  rewardlab export-recipe grpo --task arithmetic --check "trainer.n_gpus_per_node=8 trainer.nnodes=8"

--check has verl, where it is installed, compose and validate what was written, under these arguments of run.sh; no GPU is needed.

Without --task no data is written, and a reward that asks the task's verifier is refused. Exit code 3: the engine cannot carry the
method. `rewardlab parity METHOD --engine verl` compares the numbers, and docs/ENGINES.md lists what is carried.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared

HELP = "export a method to another engine (verl)"
SETTINGS = True


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    parser.add_argument("--engine", choices=("verl",), default="verl", help="the engine to write for")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write (default: METHOD-verl)")
    parser.add_argument("--rows", type=int, default=4096, metavar="N", help="training problems of an endless task (default 4096)")
    checked = "let verl's own code validate it, under these arguments of run.sh (extra `verl`)"
    parser.add_argument("--check", nargs="?", const="", metavar="WORDS", help=checked)
    shared.reward_flag(parser)
    shared.config_flags(parser, (*shared.DATA, "chat_template_kwargs", "steps", "max_new"))


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    shared.check_names(args, args.method)
    recipe = shared.load_recipe(args)
    out = args.out or Path(f"{args.method}-{args.engine}")
    task = shared.load_task(args) if args.task else None
    return api.export_recipe(
        recipe, out, task=task, max_new=args.max_new, rows=args.rows, engine=args.engine,
        check=None if args.check is None else shlex.split(args.check), **shared.given(args, ["chat_template_kwargs", "steps"]),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    if document["why"]:
        print(f"{document['engine']} cannot carry {document['method']}: {document['why']}")
        return
    facts({name: value for name, value in document.items() if name not in ("why", "differs", "start") and value is not None})
    for difference in document["differs"]:
        print(f"otherwise than with rewardlab train: {difference}")
    print(document["start"])


def exit_code(document: Mapping[str, Any]) -> int:
    return 3 if document["why"] else 0
