"""List the methods: how much of the published method each is, what it is compared with, and the verdict on its claim or check.

No method is imported. Of how much each is: whole, core, reading (of a text that leaves the formula open), or - for not yet read
against the paper. A claim holds, or not; a check works, or not.

rewardlab list
rewardlab list --folder baselines --json
"""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import Any

HELP = "list the methods"
COLUMNS = (
    "name", "folder", "system", "kind", "reference", "baseline", "claim", "shows", "verdict", "fidelity", "left_out", "idea",
)  # fmt: skip
UNREAD = "-"
"""In the place of how much of the published method a file is, where nobody has read it against the paper yet."""
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
    """Folder by folder, for each method a line with its name, kind, fidelity, baseline and verdict, then its idea.

    Plain lines: a table of hundreds of rows would take longer to lay out than to read.
    """
    from rewardlab.commands.tables import wrapped

    for folder, rows in groupby(document, key=lambda row: row["folder"]):
        print(f"\n{folder}")
        for row in rows:
            against = f"against {row['baseline']}" if row["baseline"] else "a starting point"
            kind, fidelity = row["kind"], row["fidelity"] or UNREAD
            # a check and a claim say what they found in words of their own
            print(f"  {row['name']:<{NAME}}  {kind:<14}  {fidelity:<7}  {against:<26}  {row['verdict']}")
            wrapped("    ", row["idea"])
