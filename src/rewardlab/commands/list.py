"""List the methods, with what each is compared with and the verdict on its claim. No method is imported.

rewardlab list
rewardlab list --folder baselines --json
"""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import Any

HELP = "list the methods"
COLUMNS = ("name", "folder", "system", "kind", "reference", "baseline", "claim", "verdict", "idea")
NAME = 26
"""Width of the column of names, in characters; a longer name shifts the rest of its line to the right."""


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", metavar="F", help="only the methods of one folder")


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rewardlab import registry
    from rewardlab.errors import unknown

    folders = {path.parent.name for path in registry.methods().values()}
    if args.folder and args.folder not in folders:
        raise unknown("folder", args.folder, folders)
    return [{k: row[k] for k in COLUMNS} for row in registry.rows(args.folder)]


def show(document: list[dict[str, Any]]) -> None:
    """Folder by folder, for each method a line with its name, kind, baseline and verdict, then its idea.

    Plain lines: a table of hundreds of rows would take longer to lay out than to read.
    """
    from .tables import wrapped

    for folder, rows in groupby(document, key=lambda row: row["folder"]):
        print(f"\n{folder}")
        for row in rows:
            against = f"against {row['baseline']}" if row["baseline"] else "a starting point"
            print(f"  {row['name']:<{NAME}}  {row['kind']:<14}  {against:<26}  {row['verdict']}")
            wrapped("    ", row["idea"])
