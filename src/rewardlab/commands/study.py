"""Run a study, an analysis without training, and print its table.

  rewardlab study starc --seed 3
  rewardlab study qd_suite --own mine.py:my_search --repeats 10

Its settings are flags: `rewardlab show NAME` lists them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared

HELP = "run a study without training, and print its table"
SETTINGS = True


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="NAME", help="a method of kind study")
    shared.config_flag(parser, "seed", default=0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    settings = shared.method_settings(args, args.study)
    from rewardlab.checks import runs

    return {"study": args.study, "seed": args.seed, "numbers": runs.study(args.study, args.seed, settings)}


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import table

    table(("number", "value"), document["numbers"].items())
