"""Train a policy by a method on a task.

  rewardlab train grpo --task arithmetic --steps 40 --n 8 --lr 1e-4
  rewardlab train grpo --task mine.jsonl --prompt-column question --answer-column answer --reward mine.py:score
  rewardlab train grpo --task arithmetic --reward "answer_given() >> correct() - 0.01 * length_penalty(per_token=-1)"
  rewardlab train --resume runs/mine
  rewardlab train grpo --task arithmetic --engine trl --model hf:FOLDER --trl per_device_train_batch_size=8

Methods stack (grpo+a+b). Their settings are flags: `rewardlab show METHOD` lists them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import flags as shared

HELP = "train a policy by a method, or go on with a run (--resume DIR)"
SETTINGS = True
PASSED = (
    *("model", "steps", "seed", "out", "device", "dtype", "max_new", "method"),
    *("eval_every", "eval_problems", "checkpoint_every", "micro_tokens", "lora_rank", "track"),
)


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    shared.task_flags(parser)
    shared.model_flags(parser)
    count = shared.count
    parser.add_argument("--dtype", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--lora-rank", type=count, metavar="R", help="train LoRA adapters of this rank")
    parser.add_argument("--steps", type=count, metavar="N", help="training steps (default: the task's)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the run")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in this folder")
    shared.reward_flag(parser)
    text = "tensorboard, wandb, mlflow or trackio: send settings and metrics there too; several, or a,b"
    parser.add_argument("--track", action="append", default=[], metavar="NAME", help=text)
    parser.add_argument("--dry-run", action="store_true", help="only say what it needs: columns, tokens, memory")
    other = parser.add_argument_group("another engine")
    other.add_argument("--engine", choices=("embedded", "trl"), default="embedded", help="what trains (default: embedded)")
    text = "a field of TRL's GRPOConfig that the recipe does not decide, such as bf16=true"
    other.add_argument("--trl", action="append", default=[], metavar="FIELD=VALUE", help=text)
    often = parser.add_argument_group("how often, how much")
    often.add_argument("--eval-every", type=count, default=10, metavar="N", help="steps between evaluations")
    often.add_argument("--eval-problems", type=count, default=200, metavar="N", help="held-out problems per evaluation")
    often.add_argument("--checkpoint-every", type=count, default=10, metavar="N", help="steps between checkpoints")
    often.add_argument(
        "--micro-tokens", type=count, metavar="N", help="tokens per micro-batch (default: what memory holds; changes no gradient)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.resume:
        refuse_besides_resume(args)
    asked = {} if args.resume else request(args)

    from rewardlab import api
    from rewardlab.errors import RewardlabError

    if args.dry_run:
        return api.plan(**asked)
    if args.engine == "trl":
        if args.track:
            raise RewardlabError("--track is not for --engine trl, which tracks by itself: --trl report_to=NAME")
        return through_trl(args, **asked)
    if args.trl:
        raise RewardlabError("--trl sets up TRL; give --engine trl too")
    result = api.resume(args.resume) if args.resume else api.train(**asked)
    return {"out": str(result.out), **result.summary}


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts, heading, lines, outcome

    if "formula" not in document:
        outcome(document)
        return
    heading("Formula")
    lines(document["formula"])
    heading("Needs")
    memory = {"memory": f"{document['memory_bytes'] / 2**30:.2f} GiB"} if "memory_bytes" in document else {}
    rest = {k: v for k, v in document.items() if k not in ("formula", "memory_bytes")}
    facts({k.replace("_", " "): v for k, v in (rest | memory).items()})


def through_trl(args: argparse.Namespace, recipe: Any, task: Any, **asked: Any) -> dict[str, Any]:
    """Train by the TRL engine, into a run folder like any other."""
    from rewardlab import api, registry
    from rewardlab.engine.step import Settings
    from rewardlab.engines import trl
    from rewardlab.errors import RewardlabError

    method = args.method.replace("/", "-")
    out = args.out or Path("runs") / f"{method}-{task.name}-trl-s{args.seed}"
    if (out / "config.json").exists():
        raise RewardlabError(f"{out} already holds a run; choose another --out")
    model = args.model or task.model
    given = Settings(
        steps=args.steps or Settings.steps, seed=args.seed, eval_every=args.eval_every, eval_problems=args.eval_problems,
        record_every=args.eval_every, micro_tokens=args.micro_tokens or Settings.micro_tokens,
    )  # fmt: skip
    about = {
        "name": out.name, "method": args.method, "task": task.name, "model": model, "seed": args.seed, "steps": given.steps,
        "formula": str(recipe), "recipe": recipe.to_json(), "source": task.source and dict(task.source),
        "settings": dataclasses.asdict(given), "versions": api.versions() | trl.versions(),
    }  # fmt: skip
    fields = dict(word.split("=", 1) if "=" in word else (word, "true") for word in args.trl)
    fields = {name: registry.parse_value(value) for name, value in fields.items()}
    if args.device == "cpu":
        fields["use_cpu"] = True
    if args.dtype != "auto":
        fields["bf16"] = args.dtype == "bfloat16"
    how = {"max_new": args.max_new, "lora_rank": args.lora_rank, "verify": registry.part("reward", task.verifier)}
    return {"out": str(out), **trl.train(recipe, model, task, given, out, about, **how, **fields)}


def refuse_besides_resume(args: argparse.Namespace) -> None:
    from rewardlab.errors import RewardlabError

    besides = [*filter(None, [args.method]), *sorted(args.given - {"--resume", "--json"}), *args.settings]
    if besides:
        raise RewardlabError(f"--resume goes on with a run as it was begun; drop {', '.join(besides)}")


def request(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `api.train` that these flags stand for."""
    from rewardlab.errors import RewardlabError

    if not args.method:
        raise RewardlabError("which method? rewardlab train METHOD --task TASK (rewardlab list shows them)")
    recipe, settings = shared.load_recipe(args)
    passed = {name: getattr(args, name) for name in PASSED}
    return {"recipe": recipe, "task": shared.load_task(args), "settings": settings, **passed}
