"""Run the claim of a method against its baseline, in pairs on one budget, and record the result.

rewardlab reproduce dr_grpo
rewardlab reproduce dr_grpo --seeds 3 --dev
rewardlab reproduce --all

A claim holds when the 95% t interval of the paired effects lies above 0, and their mean reaches the margin that was fixed
beforehand. It does not hold when the interval lies below the margin. Anything else is too noisy for a verdict, and so
are fewer than 5 pairs.

Results are appended to NAME.json: for a method of the package in src/rewardlab/results/ of a checkout, or results/ of the working
folder; for one of your own in results/ beside its file; or for all in $REWARDLAB_RESULTS. The last line says which file it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from . import flags as shared
from .tables import number

HELP = "run a method's claim against its baseline, and record the verdict"


def flags(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("method", nargs="?", metavar="METHOD", help="a method with a claim")
    which.add_argument("--all", action="store_true", help="every claim that has not been run since its method's file last changed")
    shared.number_flag(parser, "seeds", "pairs of runs (default 5, the least for a verdict)", default=5)
    parser.add_argument("--dev", action="store_true", help="development: seeds from 0 instead of 100, and no record")
    shared.number_flag(parser, "jobs", "runs at a time (default: as many as there are cores)")
    shared.config_flag(parser, "device", default="auto")


def run(args: argparse.Namespace) -> dict[str, Any] | list[dict[str, Any]]:
    from rewardlab.proof import reproduce

    # recorded runs use seeds on which no method was tuned
    first_seed = 0 if args.dev else reproduce.DEVELOPMENT
    seeds = range(first_seed, first_seed + args.seeds)
    if args.all:
        return reproduce.reproduce_all(seeds, jobs=args.jobs, device=args.device)
    return reproduce.reproduce(args.method, seeds, jobs=args.jobs, device=args.device)


def show(document: dict[str, Any] | list[dict[str, Any]]) -> None:
    from .tables import heading, lines, table

    if isinstance(document, list):
        columns = ("name", "measure", "effect", "95% interval", "margin", "verdict")
        table(columns, [_row(record) for record in document])
        return
    claim = document["claim"]
    heading(f"{document['name']}: {claim['says']}")
    lines(_compared(claim))
    table(("seed", "method", *(["baseline"] if document["baseline"] else []), "effect"), _pairs(document))
    interval = " to ".join(_signed(bound) for bound in document["ci95"])
    lines(f"effect {_signed(document['effect'])}, 95% interval {interval}, margin {claim['margin']:g}: {document['verdict']}")
    tokens = ", ".join(f"{side} {count:,}" for side, count in document["spent"].items())
    lines(f"{document['seconds']:.0f} s" + (f"; tokens per run: {tokens}" if tokens else ""))
    lines(f"recorded in {document['recorded']}" if document.get("recorded") else "not recorded: a run for development")


def exit_code(document: dict[str, Any] | list[dict[str, Any]]) -> int:
    """0 whatever the verdict is; 1 if there is none because a run failed."""
    records = document if isinstance(document, list) else [document]
    return 1 if any(record["verdict"] in ("incomplete", "not run") for record in records) else 0


def _compared(claim: Mapping[str, Any]) -> str:
    """What is measured, in which direction, against what and on which task."""
    against = f"against {claim['versus'] or claim['against'] or '0'}"
    return f"{claim['measure']}, to be {claim['direction']}, {against}, on {claim['task']}"


def _pairs(document: Mapping[str, Any]) -> list[list[Any]]:
    """One row for each seed: the numbers of both sides, and their effect."""
    sides = [document[side] for side in ("method", "baseline") if document[side]]
    # a failed run shows its error in place of its number
    numbers = [[run.get(document["measure"], run.get("error")) for run in side] for side in sides]
    return [list(row) for row in zip(document["seeds"], *numbers, map(_signed, document["effects"]), strict=True)]


def _row(record: Mapping[str, Any]) -> list[Any]:
    """One claim as a row of the table of `reproduce --all`."""
    # a claim that could not be run has an error instead of an effect
    if "effect" not in record:
        return [record["name"], record["measure"], "", "", "", f"{record['verdict']}: {record['error']}"]
    interval = " to ".join(_signed(bound) for bound in record["ci95"])
    return [record["name"], record["measure"], _signed(record["effect"]), interval, record["claim"]["margin"], record["verdict"]]


def _signed(value: float | None) -> str:
    return "?" if value is None else number(value, sign=True)
