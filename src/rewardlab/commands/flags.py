"""Flags that several commands share. Those that set up a run are made from the fields of RunConfig."""

from __future__ import annotations

import argparse
import functools
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from rewardlab.commands.flag_names import flag_of, name_of, unknown_flag
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import COLUMNS, RunConfig
from rewardlab.settings.domain import POSITIVE, RATES, SWITCH, WORKERS, Domain, whole

if TYPE_CHECKING:
    from rewardlab.core import Recipe, Task
    from rewardlab.servers.http import Address

FIELDS: dict[str, Field] = {f.name: f for f in fields(RunConfig)}
DATA = ("task", *COLUMNS, "overlong")
"""Which problems, and how they are read: the same flags for every command that reads problems."""
MODEL = ("model", "chat_template_kwargs", "device", "dtype", "sampler", "lora_rank", "max_new")
"""Which policy, and where it runs: the same flags for every command that loads one."""
LOADED = tuple(name for name in MODEL if name != "lora_rank")
"""MODEL for commands that do not train: adapters that are not trained change nothing."""

PORT = whole("a port, 0 to 65535", lambda n: 0 <= n <= 65535)


def config_flags(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """The flags of these fields of RunConfig, in their groups of --help."""
    groups: dict[str, Any] = {"": parser}
    for name in names:
        title = FIELDS[name].metadata["group"]
        groups[title] = groups.get(title) or parser.add_argument_group(title)
        config_flag(groups[title], name)


def config_flag(parser: Any, name: str, also: Iterable[str] = (), **instead: Any) -> None:
    """The flag of one field of RunConfig.

    also: other spellings.  instead: arguments of add_argument that replace the field's own (help, default ...).
    """
    about = FIELDS[name].metadata
    flag = about["flag"] or flag_of(name)
    options: dict[str, Any]
    if about["repeats"]:
        options = {"action": "append", "metavar": about["metavar"]}
    elif about["domain"] is SWITCH:
        options = {"action": "store_const", "const": True}
    else:
        options = {"type": functools.partial(read, flag, about["domain"]), "metavar": about["metavar"]}
    # no default here: None tells a flag that was not given from one that was given its default value
    parser.add_argument(flag, *also, **{"dest": name, "help": about["help"], **options, **instead})


def number_flag(parser: Any, name: str, help: str, domain: Domain = POSITIVE, metavar: str = "N", **options: Any) -> None:
    """A flag with a number that is not a field of RunConfig."""
    parser.add_argument(flag_of(name), type=functools.partial(read, flag_of(name), domain), metavar=metavar, help=help, **options)


def read(flag: str, domain: Domain, text: str) -> Any:
    """The value of a flag's text. Raises OutOfDomain, as the Python API does, but in the name of the flag."""
    return domain.check(flag, domain.read(text))


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The fields of RunConfig that the command line sets, by name."""
    values = {name: getattr(args, name) for name in names}
    # a flag that may be repeated is read as a list, after all of its values have been collected
    repeats = {name for name in values if FIELDS[name].metadata["repeats"]}
    return {k: FIELDS[k].metadata["domain"].read(v) if k in repeats else v for k, v in values.items() if v is not None}


def require_task(args: argparse.Namespace) -> None:
    from rewardlab import registry
    from rewardlab.registry.named_tasks import check_task

    if not args.task:
        known = ", ".join(registry.tasks())
        raise RewardlabError(f"which task? give --task NAME (known: {known}) or the path of your own problems")
    check_task(args.task)


def load_task(args: argparse.Namespace, name: str | None = None) -> Task:
    """The task of this name (default: of --task), with the columns that the flags name."""
    from rewardlab import registry

    columns = {column: getattr(args, column) for column in COLUMNS}
    return registry.task(name or args.task, **columns)


def setting_names(flags: Mapping[str, str]) -> dict[str, str]:
    """Flags as the names of settings: both --eps-high and --eps_high are eps_high."""
    return {name_of(flag): text for flag, text in flags.items()}


def reward_flag(parser: Any, instead: str = "in place of the method's own") -> None:
    """instead: what it stands for, or is for."""
    text = (
        "FILE.py:function (FILE.py, if it has only one), MODULE:function, the name of a reward, or a formula, "
        f"{instead}; several are added up"
    )
    parser.add_argument("--reward", action="append", default=[], metavar="REWARD", help=text)


def environment_flags(parser: Any) -> None:
    """The flags of an environment, for commands that take no settings of a method."""
    from rewardlab.registry.names import PLAYED

    for name, help in PLAYED.items():
        options: dict[str, Any] = {"type": functools.partial(read, "--turns", POSITIVE)} if name == "turns" else {}
        parser.add_argument(flag_of(name), metavar=name.upper(), help=help, **options)


def load_environment(args: argparse.Namespace, of_run: bool = False) -> dict[str, Any]:
    """`env` and `turns` as these flags say; nothing where they say nothing.  of_run: turns may stand alone, for those of a run."""
    from rewardlab.registry.formula import with_parts
    from rewardlab.registry.names import PLAYED
    from rewardlab.registry.playing import environment_in

    given = {name: value for name in PLAYED if (value := getattr(args, name)) is not None}
    if of_run and given.keys() == {"turns"}:
        return given
    return environment_in(with_parts([], given), [])[1]


def rates_of(text: str | None) -> tuple[float, ...]:
    """The learning rates in a list with commas between them; none without a list."""
    return () if text is None else read("--rates", RATES, text)


def workers_flag(parser: Any) -> None:
    """The flag of commands that a Ray cluster can do."""
    text = "ray, or ray:N for N processes: over a Ray cluster, or without one on this machine (default: here alone)"
    parser.add_argument("--workers", type=functools.partial(read, "--workers", WORKERS), metavar="WHERE", help=text)


def load_reward(args: argparse.Namespace) -> Any:
    """The reward that --reward names, the sum of several; None if it was not given."""
    if not getattr(args, "reward", None):
        return None
    from rewardlab.registry.formula import read_reward

    return functools.reduce(operator.add, map(read_reward, args.reward))


def check_names(args: argparse.Namespace, *methods: str) -> None:
    """Raise RewardlabError for names of methods, settings and rewards that do not exist; torch is not imported to know."""
    from rewardlab.registry import names

    for method in methods:
        names.check_methods(method)
    known = [names.settings_of(method) for method in methods]
    if None not in known:
        flags = {flag_of(setting) for settings in known for setting in settings or ()}
        for flag in args.settings:
            # flags with a dot name one method; they are checked where the recipe is built
            if "." not in flag and flag.replace("_", "-") not in flags:
                raise unknown_flag(", ".join(methods), flag, flags | args.own_flags.keys())
    for reward in getattr(args, "reward", None) or ():
        names.check_reward(reward)


def method_settings(args: argparse.Namespace, *methods: str) -> dict[str, Any]:
    """The flags that are settings of these methods, as values. Raises RewardlabError for one that none of them has."""
    from rewardlab import registry
    from rewardlab.registry.names import PLAYED

    check_names(args, *methods)
    # a setting may be given without the method's name before it: --dapo.n as --n
    known = {re.sub(r"^--.*\.", "--", p.flag): p.type for method in methods for p in registry.parameters(method)}
    known = dict.fromkeys(map(flag_of, PLAYED), "value") | known
    for flag, text in args.settings.items():
        # flags with a dot name one method; they are checked where the recipe is built
        if "." not in flag and flag.replace("_", "-") not in known:
            raise unknown_flag(", ".join(methods), flag, known.keys() | args.own_flags.keys())
        # a flag without a value reads as a switch that is on
        if text == "true" and known.get(flag.replace("_", "-")) in ("int", "float"):
            raise RewardlabError(f"{flag} needs a value: {flag} NUMBER")
    texts = {name_of(flag) for flag, type in known.items() if type == "str"}
    read = {name: (text, registry.parse_value(text)) for name, text in setting_names(args.settings).items()}
    # a text stays one, also where it reads as a number or as JSON
    kept = {name for name, (_, value) in read.items() if name.rpartition(".")[2] in texts and not isinstance(value, str)}
    return {name: text if name in kept else value for name, (text, value) in read.items()}


def load_recipe(args: argparse.Namespace) -> Recipe:
    """The recipe of METHOD under its settings, with --reward in place of its own; says what has no effect and what is lost."""
    from rewardlab import registry
    from rewardlab.registry.replaced import told_replaced
    from rewardlab.registry.without_effect import without_effect
    from rewardlab.util.progress import console

    settings = method_settings(args, args.method)
    recipe, reward = registry.build(args.method, settings), load_reward(args)
    notes = [
        f"{flag_of(name)} changes nothing: {args.method} makes the same recipe without it"
        for name in without_effect(args.method, settings, recipe)
    ]
    notes += [] if reward is None else filter(None, [told_replaced(recipe)])
    for note in notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    return recipe if reward is None else recipe.scored_by(reward)


def address_flags(parser: Any, port: int) -> None:
    """Where a server listens, and to whom."""
    group = parser.add_argument_group("address")
    group.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine)"
    )
    number_flag(group, "port", f"port; 0: any that is free (default {port})", PORT, default=port)
    group.add_argument("--key-from", metavar="NAME", help="environment variable with the token that requests must carry")
    number_flag(group, "body", "MiB of one request, at most (default 16)", default=16)
    number_flag(group, "drain", "seconds for open requests at shutdown (default 30)", metavar="S", default=30)


def address(args: argparse.Namespace) -> Address:
    """What `address_flags` say. Raises RewardlabError where the packages of a server are not installed."""
    from rewardlab.util.extras import require

    require("serve", "fastapi", "uvicorn", "prometheus_client", what="a server")

    from rewardlab.servers.http import Address

    return Address(args.host, args.port, args.key_from, args.body, args.drain)
