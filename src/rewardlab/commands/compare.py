"""Run several methods on the same problems and one budget; print means and paired differences, and write a page of curves.

rewardlab compare grpo rloo ppo --task arithmetic
rewardlab compare grpo rloo --task countdown --budget 100000 --seeds 8 --out runs/mine

Without --budget, every method gets what the first one spends in --steps steps. The folder holds compare.json and compare.html.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import flags as shared

HELP = "run several methods on the same problems and one budget"


def flags(parser: argparse.ArgumentParser) -> None:
    count = shared.count
    parser.add_argument("methods", nargs="+", metavar="METHOD", help="two methods or more; a stack counts as one: grpo+a")
    text = "a task (arithmetic, arithmetic:difficulty=4), or a file of problems"
    parser.add_argument("--task", required=True, metavar="TASK", help=text)
    parser.add_argument(
        "--model", help="embedded, smollm2, a checkpoint folder, a run, or hf:FOLDER (default: the task's own small policy)"
    )
    parser.add_argument("--seeds", type=count, default=5, metavar="N", help="runs of each method (default 5)")
    spend = parser.add_mutually_exclusive_group()
    spend.add_argument("--steps", type=count, default=20, metavar="N", help="training steps of the first method (default 20)")
    spend.add_argument("--budget", type=count, metavar="TOKENS", help="tokens of each run, generated and scored by all models")
    parser.add_argument("--measure", metavar="NAME", help="the number compared (default: what the first method measures)")
    parser.add_argument("--problems", type=count, default=200, metavar="N", help="held-out problems per evaluation")
    parser.add_argument("--eval-every", type=count, default=5, metavar="N", help="steps between points of the curves (default 5)")
    parser.add_argument("--jobs", type=count, metavar="N", help="runs at a time (default: as many as there are cores)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write (default: a new one in runs/)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.proof.compare import World, compare

    world = World(args.task, args.model, args.problems, args.eval_every)
    same = ("steps", "budget", "measure", "jobs", "out")
    return compare(args.methods, world, seeds=range(args.seeds), **{name: getattr(args, name) for name in same})


def show(document: Mapping[str, Any]) -> None:
    from .tables import heading, lines, table

    rows, seeds = document["methods"], len(document["seeds"])
    heading(f"{document['measure']} on {document['task']}, {seeds} seed{'s' * (seeds > 1)}")
    columns = ("method", "mean", "95% interval", f"against {rows[0]['method']}", "95% interval", "tokens", "seconds")
    table(columns, [_row(row) for row in rows])
    lines(str(Path(document["out"]) / "compare.html"))


def _row(row: Mapping[str, Any]) -> list[Any]:
    difference = row["difference"] or {"mean": None, "ci95": None}
    change = "" if difference["mean"] is None else f"{difference['mean']:+.4g}"
    seconds = sum(row["seconds"]) / len(row["seconds"])
    return [row["method"], row["mean"], row["ci95"], change, difference["ci95"], f"{row['tokens']:,}", seconds]
