"""What the commands on data share: their files, what they print, and their exit code."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rewardlab.data.files import STREAM
from rewardlab.errors import RewardlabError

SHOWN = 10
"""Broken lines that are printed; the file of rows that are left out has them all."""


def files(parser: argparse.ArgumentParser, source: str | None = "FILE") -> None:
    """The flags of the files. source: the name of the input; None: the command has an argument of its own for it."""
    if source:
        parser.add_argument("source", metavar=source, help="JSON lines, .csv or .parquet; - for stdin")
    parser.add_argument("--out", metavar="FILE", required=True, help="JSON lines, .csv or .parquet, by its name; - for stdout")
    parser.add_argument("--dropped", metavar="FILE", help="dropped rows, with reasons (default: OUT.dropped.jsonl)")


def check(args: argparse.Namespace) -> None:
    """Raise RewardlabError where two things would be written to stdout."""
    if args.json and args.out == STREAM:
        raise RewardlabError("--json and --out - would both write to stdout; give --out a file")


def pairs_of(flag: str, words: Iterable[str], form: str) -> dict[str, str]:
    """NAME=VALUE words as a dict.  form: how they are written, for messages."""
    found: dict[str, str] = {}
    for word in words:
        # a file's name may hold the sign too
        name, equals, value = word.rpartition("=")
        if not equals or not name:
            raise RewardlabError(f"{flag} is written {form}, not {word!r}")
        if name in found:
            raise RewardlabError(f"{flag} names {name} twice")
        found[name] = value
    return found


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, warn_of_cut_off

    # with --out -, stdout is for the rows alone
    with contextlib.redirect_stdout(sys.stderr) if document["out"] == STREAM else contextlib.nullcontext():
        facts({k: v for k, v in document.items() if k not in ("tool", "broken_lines") and v not in ({}, None)})
        warn_of_cut_off(document)
        if not document["rows"]:
            print("the input has no rows")
        for line in document["broken_lines"][:SHOWN]:
            print(f"broken: {line}")
        if len(document["broken_lines"]) > SHOWN:
            print(f"and {len(document['broken_lines']) - SHOWN} more: see {document['dropped_rows']}")


def exit_code(document: Mapping[str, Any]) -> int:
    # what a tool leaves out is its work, but a script must hear of lines that could not be read
    return 1 if document["broken_lines"] else 0
