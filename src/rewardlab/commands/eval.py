"""Measure pass@k of a model, or of a run's policy, on held-out problems.

rewardlab eval embedded --task arithmetic --k 1,8
rewardlab eval runs/mine --task arithmetic --problems 500
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from . import flags as shared

HELP = "measure pass@k of a model or a run on held-out problems"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL_OR_RUN", help="embedded, smollm2, a checkpoint folder, a run, or hf:FOLDER")
    shared.task_flags(parser)
    parser.add_argument("--k", type=counts, default=(1, 8), metavar="K,K", help="tries per problem (default 1,8)")
    parser.add_argument("--problems", type=shared.count, default=200, metavar="N")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T")
    shared.device_flag(parser)
    shared.seed_flag(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    task = shared.load_task(args)

    from rewardlab import api

    same = ("k", "problems", "temperature", "seed", "device")
    return api.evaluate(args.model, task, **{name: getattr(args, name) for name in same})


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts

    facts(document)


def counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({shared.count(k.strip()) for k in text.split(",")}))
