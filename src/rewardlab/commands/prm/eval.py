"""Evaluate a process reward model on labelled solutions.

rewardlab prm eval runs/prm --on held_out.jsonl --page prm.html
rewardlab prm eval ORG/NAME?as=rlhflow --on processbench --json
rewardlab prm eval smollm2?as=likelihood --on prmbench --limit 40

First errors are counted as ProcessBench does: of solutions with a wrong step, how often the first step judged wrong is the first
wrong one; of those without, how often none is judged wrong; and the harmonic mean of both. A step is judged right if its chance is
above --threshold. The rest: AUC of steps, Brier score, calibration, accuracy by place and by length, PRMBench's PRMScore of each
category, and the tokens that it took. Where the column right says of several solutions to a question whether they are right: how
often the one that is worth most is, by its least step, its last, their product or mean, beside a random choice. --on takes a file
or folder, or processbench or prmbench, which are looked for in the folder that REWARDLAB_DATA names.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.settings.domain import SHARE

HELP = "evaluate a process reward model: first errors, AUC, calibration, cost"
FIELDS = ("device", "dtype", "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, run or hub model; PATH?as=CONVENTION where it does not say which")
    parser.add_argument("--on", required=True, metavar="FILE", help="labelled solutions: a file, a folder, processbench, prmbench")
    text = "threshold above which a step is judged right (default 0.5)"
    shared.number_flag(parser, "threshold", text, SHARE, metavar="P", default=0.5)
    parser.add_argument(
        "--fit-threshold", action="store_true", help="choose it for the best F1 on half of the problems; measure on the others"
    )
    shared.number_flag(parser, "limit", "evaluate on a random subset of this size")
    parser.add_argument("--format", default="auto", metavar="NAME", help="of the file (default: by its columns)")
    parser.add_argument("--page", metavar="FILE.html", help="write a page with tables and the calibration plot")
    parser.add_argument("--out", metavar="FILE", help="write each solution with its step scores, as JSON lines")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.evaluate_scorer(
        args.model, args.on, threshold=args.threshold, fit_threshold=args.fit_threshold, limit=args.limit, format=args.format,
        page=args.page, out=args.out, **shared.given(args, FIELDS),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading, table

    about = ("model", "convention", "on", "threshold", "threshold_fitted_on", "solutions", "left_out", "note", "page")
    facts({name: document[name] for name in about if document.get(name) not in (None, 0)} | dict(document["cost"]))
    for title, part in (("First errors", "first_error"), ("Steps", "steps")):
        heading(title)
        facts(document[part])
    for title, rows in _tables(document):
        heading(title)
        names = list(dict.fromkeys(name for row in rows for name in row))
        table(names, [[row.get(name) for name in names] for row in rows])


def _tables(document: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    found = [("Choosing among solutions to a question, by", rows)] if (rows := document["choosing"]) else []
    found += [("By place of the step", document["by_position"]), ("By length of the solution", document["by_length"])]
    if bench := document.get("prmbench"):
        whole = {name: value for name, value in bench.items() if name not in ("groups", "categories")}
        rows = [{"category": "all", **whole}, *({"category": name, **row} for name, row in bench["categories"].items())]
        rows += [{"category": f"{name} (mean)", "prm_score": value} for name, value in bench["groups"].items()]
        found.append(("PRMBench", rows))
    if subsets := document.get("subsets"):
        found.append(("By file", [{"file": name, **row} for name, row in subsets.items() if isinstance(row, Mapping)]))
    return found
