"""Flags that several commands share. Those that set up a run are made from the fields of RunConfig."""

from __future__ import annotations

import argparse
import functools
import operator
import re
from collections.abc import Iterable
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.runs.config import POSITIVE, Domain, RunConfig

if TYPE_CHECKING:
    from rewardlab.core import Recipe, Task

FIELDS: dict[str, Field] = {f.name: f for f in fields(RunConfig)}
TASK = ("task", "prompt_column", "answer_column", "system")
POLICY = ("model", "device", "max_new", "seed")


def config_flags(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """The flags of these fields of RunConfig, in their groups of --help."""
    groups: dict[str, Any] = {"": parser}
    for name in names:
        title = FIELDS[name].metadata["group"]
        groups[title] = groups.get(title) or parser.add_argument_group(title)
        config_flag(groups[title], name)


def config_flag(parser: Any, name: str, **instead: Any) -> None:
    """The flag of one field of RunConfig. instead: arguments of add_argument that replace the field's own (help, default ...)."""
    about = FIELDS[name].metadata
    flag = about["flag"] or flag_of(name)
    if about["repeats"]:
        options: dict[str, Any] = {"action": "append"}
    else:
        options = {"type": functools.partial(read, name, about["domain"])}
    # no default here: None tells a flag that was not given from one that was given its default value
    parser.add_argument(flag, **{"dest": name, "metavar": about["metavar"], "help": about["help"], **options, **instead})


def number_flag(parser: Any, name: str, help: str, domain: Domain = POSITIVE, metavar: str = "N", **options: Any) -> None:
    """A flag with a number that is not a field of RunConfig."""
    parser.add_argument(flag_of(name), type=functools.partial(read, name, domain), metavar=metavar, help=help, **options)


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def read(name: str, domain: Domain, text: str) -> Any:
    """The value of a flag's text. Raises the same RewardlabError as the Python API if it is outside its domain."""
    return domain.check(name, domain.read(text))


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The fields of RunConfig that the command line sets, by name."""
    values = {name: getattr(args, name) for name in names}
    # a flag that may be repeated is read as a list, after all of its values have been collected
    repeats = {name for name in values if FIELDS[name].metadata["repeats"]}
    return {k: FIELDS[k].metadata["domain"].read(v) if k in repeats else v for k, v in values.items() if v is not None}


def require_task(args: argparse.Namespace) -> None:
    from rewardlab import registry

    if not args.task:
        known = ", ".join(registry.tasks())
        raise RewardlabError(f"which task? give --task NAME (known: {known}) or the path of your own problems")


def load_task(args: argparse.Namespace, name: str | None = None) -> Task:
    """The task of this name (default: of --task), with the columns that the flags name."""
    from rewardlab import registry

    columns = {column: getattr(args, column) for column in TASK[1:]}
    return registry.task(name or args.task, **columns)


def reward_flag(parser: argparse.ArgumentParser) -> None:
    text = (
        "FILE.py:function (FILE.py, if it has only one), MODULE:function, the name of a reward, or a formula, in place of the "
        "method's own; several are added up"
    )
    parser.add_argument("--reward", action="append", default=[], metavar="REWARD", help=text)


def load_recipe(args: argparse.Namespace) -> tuple[Recipe, dict[str, Any]]:
    """The recipe of METHOD under its settings, with --reward in place of its own reward; and those settings as values."""
    from rewardlab import registry

    # a setting may be given without the method's name before it: --dapo.n as --n
    known = {re.sub(r"^--.*\.", "--", p.flag) for p in registry.parameters(args.method)}
    settings = {}
    for flag, text in args.settings.items():
        # flags with a dot name one method of a stack; `build` checks those
        if "." not in flag and flag.replace("_", "-") not in known:
            raise unknown(f"flag of {args.method}", flag, known | args.own_flags.keys())
        # both spellings are accepted, --eps-high and --eps_high
        settings[flag[2:].replace("-", "_")] = registry.parse_value(text)
    recipe = registry.build(args.method, settings)
    if getattr(args, "reward", None):
        from rewardlab.registry.formula import read_reward

        recipe = recipe.but(reward=functools.reduce(operator.add, map(read_reward, args.reward)))
    return recipe, settings
