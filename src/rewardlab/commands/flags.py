"""Flags that several commands share, and what they stand for."""

from __future__ import annotations

import argparse
import functools
import operator
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.core import Recipe, Task


def task_flags(parser: argparse.ArgumentParser, group: Any = None) -> None:
    text = "a task (arithmetic, arithmetic:difficulty=4), or a .jsonl or .parquet file or dataset folder of your own"
    (group or parser).add_argument("--task", metavar="TASK", help=text)
    column_flags(parser)


def column_flags(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group("problems of your own")
    own.add_argument("--prompt-column", metavar="NAME", help="column of the prompts")
    own.add_argument("--answer-column", metavar="NAME", help="column of the answers")
    own.add_argument("--system", metavar="TEXT", help="a system message put before each prompt")


def model_flags(parser: argparse.ArgumentParser) -> None:
    text = "smollm2, a checkpoint folder, a run, or hf:FOLDER for any of transformers (default: the task's own small policy)"
    parser.add_argument("--model", help=text)
    device_flag(parser)
    parser.add_argument("--max-new", type=count, metavar="N", help="longest reply in tokens (default: the task's)")
    seed_flag(parser)


def device_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")


def seed_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="S")


def count(text: str) -> int:
    """A positive whole number."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def load_task(args: argparse.Namespace) -> Task:
    from rewardlab import registry
    from rewardlab.errors import RewardlabError

    if not args.task:
        known = ", ".join(registry.tasks())
        raise RewardlabError(f"which task? give --task NAME (known: {known}) or the path of your own problems")
    columns = {"prompt_column": args.prompt_column, "answer_column": args.answer_column, "system": args.system}
    return registry.task(args.task, **columns)


def reward_flag(parser: argparse.ArgumentParser) -> None:
    text = "FILE.py:function, the name of a reward, or a formula, in place of the method's own; several are summed"
    parser.add_argument("--reward", action="append", default=[], metavar="REWARD", help=text)


def load_recipe(args: argparse.Namespace) -> tuple[Recipe, dict[str, Any]]:
    """The recipe that METHOD and the settings name, and the settings as they were understood."""
    from rewardlab import registry
    from rewardlab.errors import unknown

    takes = {re.sub(r"^--.*\.", "--", p.flag) for p in registry.parameters(args.method)}
    settings = {}
    for flag, value in args.settings.items():
        spelled = flag.replace("_", "-")
        if "." not in flag and spelled not in takes:
            raise unknown(f"flag of {args.method}", flag, takes | args.own.keys())
        settings[flag[2:].replace("-", "_")] = registry.parse_value(value)
    recipe = registry.build(args.method, settings)
    if getattr(args, "reward", None):
        from rewardlab.registry.formula import read_reward

        recipe = recipe.but(reward=functools.reduce(operator.add, map(read_reward, args.reward)))
    return recipe, settings
