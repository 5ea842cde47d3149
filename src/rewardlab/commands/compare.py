"""Run several methods on the same problems and one budget; print means and paired differences, and write a page of curves.

rewardlab compare grpo rloo ppo --task arithmetic
rewardlab compare grpo rloo --task countdown --budget 100000 --seeds 8 --out runs/mine

Without --budget, every method gets the tokens that the first one uses in --steps steps. The folder holds compare.json
and compare.html.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import flags as shared

HELP = "run several methods on the same problems and one budget"
FIELDS = (*shared.DATA, *shared.MODEL, "steps", "budget", "eval_every")


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("methods", nargs="+", metavar="METHOD", help="two methods or more; a stack counts as one: grpo+a")
    shared.config_flag(parser, "task", required=True)
    shared.number_flag(parser, "seeds", "runs of each method (default 5)", default=5)
    # a run ends after a number of steps or at a budget, not at both
    end = parser.add_mutually_exclusive_group()
    shared.config_flag(end, "steps", help="training steps of the first method (default 20)")
    shared.config_flag(end, "budget", help="tokens of each run, generated and scored by all models")
    parser.add_argument("--measure", metavar="NAME", help="the number compared (default: what the first method measures)")
    shared.number_flag(parser, "problems", "held-out problems per evaluation (default 200)", default=200)
    shared.config_flag(parser, "eval_every", default=5, help="steps between points of the curves (default 5)")
    shared.number_flag(parser, "jobs", "runs at a time (default: as many as there are cores)")
    # without task, steps, budget and eval_every, which have flags of their own above
    shared.config_flags(parser, FIELDS[1:-3])
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write (default: a new one in runs/)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.proof.compare import compare

    config = shared.RunConfig(eval_problems=args.problems, **shared.given(args, FIELDS))
    return compare(args.methods, config, seeds=range(args.seeds), measure=args.measure, jobs=args.jobs, out=args.out)


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
