"""List the methods, with what each is compared with and how its claim fared.

rewardlab list
rewardlab list --folder baselines --json
"""

from __future__ import annotations

import argparse
from typing import Any

HELP = "list the methods"
COLUMNS = ("name", "folder", "system", "kind", "reference", "baseline", "claim", "verdict")


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", metavar="F", help="only the methods of one folder")


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rewardlab import registry

    folders = {path.parent.name for path in registry.methods().values()}
    if args.folder and args.folder not in folders:
        raise registry.unknown("folder", args.folder, folders)
    rows = registry.rows(args.folder)
    return [{k: row[k] for k in COLUMNS} for row in rows] if args.json else rows


def show(document: list[dict[str, Any]]) -> None:
    from .tables import table

    columns = ("folder", "name", "idea", "baseline", "verdict")
    table(columns, [[row[k] for k in columns] for row in document])
