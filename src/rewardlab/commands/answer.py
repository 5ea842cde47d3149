"""Answer problems by a method's search and selection (best_of_n, majority_vote, ...), without training.

rewardlab answer majority_vote --task arithmetic --n 16
rewardlab answer best_of_n --prompt "What is 17 * 4 + 3?"
rewardlab answer best_of_n --task arithmetic --reward "answer_given() >> likelihood()"
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from . import flags as shared

HELP = "answer problems, or one prompt, by a method's search and selection"
SETTINGS = True


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked")
    what = parser.add_mutually_exclusive_group(required=True)
    shared.task_flags(parser, what)
    what.add_argument("--prompt", metavar="TEXT", help="one question")
    shared.model_flags(parser)
    shared.reward_flag(parser)
    parser.add_argument("--problems", type=shared.count, default=100, metavar="N", help="held-out problems of the task")


def run(args: argparse.Namespace) -> dict[str, Any]:
    recipe, _ = shared.load_recipe(args)
    task = shared.load_task(args) if args.task else None

    from rewardlab import api

    same = ("model", "prompt", "problems", "seed", "device", "max_new")
    return api.answer(recipe, task=task, **{name: getattr(args, name) for name in same})


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts

    facts(document)
