"""Export a run's policy as a Hugging Face checkpoint: the best by held-out measure, or with --last the last.

  rewardlab export runs/mine mine-hf
  rewardlab export runs/lora mine-hf                # LoRA adapters merged into their base model
  rewardlab export runs/lora mine-lora --adapter    # the adapters alone, for peft
  rewardlab export runs/ppo critic --model critic   # a model that learned beside the policy, at the newest checkpoint

In the run's folder weights are float32, so that none of what was learned is lost; the export has the format of the model that the
run began from, unless --dtype names another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "export a run's policy as a Hugging Face checkpoint"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("out", type=Path, metavar="DIR", help="folder to write")
    parser.add_argument("--last", action="store_true", help="the last policy instead of the best")
    text = "an auxiliary model, such as critic, instead of the policy"
    parser.add_argument("--model", default="policy", metavar="NAME", help=text)
    parser.add_argument("--adapter", action="store_true", help="the LoRA adapters alone, in PEFT's format, instead of merging them")
    text = "format of the weights: auto (the base model's), float32, bfloat16 or float16"
    parser.add_argument("--dtype", default="auto", metavar="DTYPE", help=text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.export(args.run, args.out, last=args.last, adapter=args.adapter, dtype=args.dtype, model=args.model)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    facts({name: value for name, value in document.items() if name != "warning"})
    if "warning" in document:
        print(f"warning: {document['warning']}", file=sys.stderr)
