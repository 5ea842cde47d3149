"""Compare one method on two engines: the embedded one and another, on one model and the same recorded replies.

  rewardlab parity grpo --engine trl
  rewardlab parity grpo --engine verl
  torchrun --nproc-per-node 2 -m -- rewardlab parity grpo --engine trl --json

Exit code 0: advantages, loss and gradient agree to 1e-5. 1: they differ. 3: the engine cannot run the method.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared

HELP = "compare a method's advantages, loss and gradient on two engines"
SETTINGS = True
CODES = {"equal": 0, "differs": 1, "cannot carry": 3}  # 2 is for wrong requests, as in every command


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    parser.add_argument("--engine", choices=("trl", "verl"), default="trl", help="the engine compared with the embedded one")
    shared.config_flags(parser, shared.DATA)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import registry
    from rewardlab.backends import parity
    from rewardlab.engine import distributed
    from rewardlab.models.load import load_policy

    distributed.init()
    recipe = shared.load_recipe(args)
    task = shared.load_task(args, args.task or claimed(args.method))
    # engines print to stdout, which is for the document, with or without --json
    with contextlib.redirect_stdout(sys.stderr):
        # random weights will do: the arithmetic of the engines is compared, and no text has to make sense
        start, verify = load_policy("untrained", task=task), registry.verifier(task.verifier)
        return parity.compare(recipe, task, start, verify, args.engine)


def claimed(method: str) -> str:
    """The task on which the claim of the last stacked method is made."""
    from rewardlab import registry

    return registry.claim_of(method.split("+")[-1]).task


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading, table

    heading(f"{document['method']} on {document['engine']}: {document['verdict']}")
    if document["why"]:
        facts({"why": document["why"]})
    if document["differences"]:
        rows = [
            [name, f"{difference:.1e}", f"{document['largest'][name]:.3g}"] for name, difference in document["differences"].items()
        ]
        table(("", "largest difference", "largest number"), rows)


def exit_code(document: Mapping[str, Any]) -> int:
    return CODES[document["verdict"]]
