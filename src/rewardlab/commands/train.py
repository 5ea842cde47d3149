"""Train a policy by a method on a task.

  rewardlab train grpo --task arithmetic --steps 40 --n 8 --lr 1e-4
  rewardlab train grpo --task mine.jsonl --prompt-column question --answer-column answer --reward mine.py:score
  rewardlab train grpo --task arithmetic --reward "answer_given() >> correct() - 0.01 * length_penalty(per_token=-1)"
  rewardlab train --resume runs/mine
  rewardlab train grpo --task arithmetic --engine trl --model ORG/NAME --trl per_device_train_batch_size=8

Methods stack (grpo+a+b). Their settings are flags: `rewardlab show METHOD` lists them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from . import flags as shared

HELP = "train a policy by a method, or resume a run (--resume DIR)"
SETTINGS = True
FIELDS = tuple(name for name, f in shared.FIELDS.items() if not f.metadata["no_flag"])


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    shared.reward_flag(parser)
    parser.add_argument("--resume", type=Path, metavar="DIR", help="resume the run in this folder")
    parser.add_argument("--dry-run", action="store_true", help="print the columns, tokens and memory it needs; do not train")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.resume:
        refuse_besides_resume(args)
    arguments = {} if args.resume else request(args)

    # torch is imported only now that the request has been checked
    from rewardlab import api

    if args.dry_run:
        return api.plan(**arguments)
    result = api.resume(args.resume) if args.resume else api.train(**arguments)
    return {"out": str(result.out), **result.summary}


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts, heading, lines, outcome

    # only the plan of --dry-run has a formula
    if "formula" not in document:
        outcome(document)
        return
    heading("Formula")
    lines(document["formula"])
    heading("Needs")
    memory = {"memory": f"{document['memory_bytes'] / 2**30:.2f} GiB"} if "memory_bytes" in document else {}
    needs = {k: v for k, v in document.items() if k not in ("formula", "memory_bytes")}
    facts({k.replace("_", " "): v for k, v in (needs | memory).items()})


def refuse_besides_resume(args: argparse.Namespace) -> None:
    """Raise RewardlabError if --resume comes with anything that would change the run."""
    refused = [*filter(None, [args.method]), *sorted(args.flags_given - {"--resume", "--json"}), *args.settings]
    if refused:
        raise RewardlabError(f"--resume takes everything from the run's config.json; drop {', '.join(refused)}")


def request(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `api.train` and `api.plan` that these flags stand for."""
    if not args.method:
        raise RewardlabError("which method? rewardlab train METHOD --task TASK (rewardlab list shows them)")
    config = shared.RunConfig(method=args.method, **shared.given(args, FIELDS))
    recipe, settings = shared.load_recipe(args)
    shared.require_task(args)
    return {"recipe": recipe, "config": config, "settings": settings}
