"""Browse the parts of recipes: by slot, rewards, verifiers, operators, tasks and models. Nothing is imported.

rewardlab parts
rewardlab parts credit
rewardlab parts gae
rewardlab parts dapo/overlong

The flags of a whole method: rewardlab show METHOD.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

HELP = "browse parts by slot, rewards, verifiers, tasks and models"


def flags(parser: argparse.ArgumentParser) -> None:
    text = "a slot, or verifier, operator, task, model; or the name of one of them"
    parser.add_argument("name", nargs="?", metavar="SLOT|NAME", help=text)


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rewardlab.registry import browse

    # `parts rewards` is understood, too
    kind = args.name.removesuffix("s") if args.name and args.name.removesuffix("s") in browse.ORDER else args.name
    return browse.entries(kind) if kind in (None, *browse.ORDER) else browse.named(args.name)


def show(document: list[dict[str, Any]]) -> None:
    """Kind by kind, a line for each part with its idea; of a few parts that share a name, everything."""
    if len({entry["name"] for entry in document}) == 1:
        for entry in document:
            details(entry)
        return
    from rewardlab.commands.tables import heading, listing

    for kind, group in groupby(document, key=lambda entry: entry["kind"]):
        heading(kind)
        listing((entry["name"], entry["about"]) for entry in group)


def details(entry: Mapping[str, Any], flags: bool = False) -> None:
    """Everything about one part; flags: with its settings as flags."""
    from rewardlab.commands.tables import facts, heading, lines

    heading(f"{entry['kind']}  {called(entry)}")
    lines(entry["doc"] or entry["about"])
    if entry["settings"]:
        heading("Settings")
        settings_table(entry["settings"], flags)
    print()
    used = {"used by": ", ".join(entry["used_by"])} if entry["used_by"] else {}
    facts(used | {"file": f"{entry['path']}:{entry['line']}"})


def settings_table(settings: Iterable[Mapping[str, Any]], flags: bool = False) -> None:
    """Settings with their defaults and values; flags: as they are written on the command line."""
    from rewardlab.commands.tables import table

    rows = [
        (f"--{s['name'].replace('_', '-')}" if flags else s["name"], "(required)" if s["required"] else s["default"], s["values"])
        for s in settings
    ]
    table(("flag" if flags else "setting", "default", "values"), rows)


def called(entry: Mapping[str, Any]) -> str:
    """The part as a recipe writes it, with its defaults."""
    if entry["kind"] == "model":
        return str(entry["name"])
    settings = ", ".join(s["name"] if s["required"] else f"{s['name']}={s['default']}" for s in entry["settings"])
    return f"{entry['name']}({settings})"
