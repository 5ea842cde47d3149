"""Check this machine: what it has, what it lacks, and what for.

  rewardlab doctor
  rewardlab doctor --json

Software, processors and their matrix formats, memory, GPU, compiled kernels, the sandbox (one program runs in it), the browser (it
is started once), the cache, and the optional extras. Nothing is installed or changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

HELP = "check this machine: what it has, what it lacks, and what for"


def flags(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.api.machine import doctor

    return doctor()


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, listing, table

    heading("This machine")
    table(("", "found", ""), [(row["what"], row["found"], _mark(row)) for row in document["machine"]])
    heading("Extras")
    table(("", "for", ""), [(row["what"], row["found"], _mark(row, "not installed")) for row in document["extras"]])
    remedies = [(row["what"], row["remedy"]) for rows in document.values() for row in rows if row["remedy"]]
    if remedies:
        heading("What would help")
        listing(remedies)


def _mark(row: Mapping[str, Any], missing: str = "MISSING") -> str:
    return missing if row["state"] == "missing" else row["state"]
