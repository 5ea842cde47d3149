"""Show a method, or a stack of them: idea, formula as composed, what it changes, claim and verdict, flags.

rewardlab show grpo
rewardlab show grpo+a+b

The method is imported and its recipe built, so a file outside rewardlab (REWARDLAB_METHODS) is run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

HELP = "show a method: idea, formula, what it changes, claim and result, flags"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked: grpo+a+b")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.registry import names

    # before torch is imported
    names.check_methods(args.method)

    from rewardlab.registry import details

    return details.details(args.method)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, lines

    heading(f"{document['name']}  {document.get('title') or ''}".rstrip())
    lines(f"{document['idea']}\nkind: {document['kind']}")
    if "fidelity" in document:
        # a stack has none of its own
        lines(f"of the published method: {_fidelity(document)}")
    if document.get("text"):
        lines("\n" + document["text"])
    heading("Formula")
    lines(document["formula"])
    if document["baseline"]:
        heading(f"Changes against {document['baseline']}")
        lines(_changes(document["changes"]) or "only its defaults")
    # a stack shows the claim of each of its methods
    for method in document.get("methods", [document]):
        heading(_shows(method) if method is document else f"{_shows(method)} of {method['name']}")
        lines(f"{method['claim']}\nverdict: {method['verdict']}{in_file(method)}" if method["claim"] else "none")
    _flags(document["parameters"])
    if document.get("reference"):
        heading("Source")
        lines(f"{document['reference']}\n{document['path']}")


def _shows(method: Mapping[str, Any]) -> str:
    return "Check" if method["shows"] == "check" else "Claim"


def _fidelity(method: Mapping[str, Any]) -> str:
    """How much of the published method it is, and what it leaves out."""
    from rewardlab.registry.describe import FIDELITIES

    if method["fidelity"] is None:
        return "not yet read against the paper"
    left_out = f"; left out: {method['left_out']}" if method["left_out"] else ""
    return f"{method['fidelity']}, {FIDELITIES[method['fidelity']]}{left_out}"


def in_file(method: Mapping[str, Any]) -> str:
    """Where the result of a method is."""
    return f" ({method['record']})" if method.get("record") else ""


def _flags(parameters: list[list[Any]]) -> None:
    from rewardlab.commands.tables import heading, table

    heading("Flags")
    table(("flag", "type", "default", "method", "values"), parameters)


def _changes(changes: Mapping[str, list[str | None]]) -> str:
    """Each changed slot with its lines before (-) and after (+), like a diff."""
    slots = []
    for slot, (before, after) in changes.items():
        sides = (("-", before), ("+", after))
        marked = [f"{sign} {line}" for sign, text in sides for line in (text or "").splitlines()]
        slots.append("\n".join([slot, *(f"  {line}" for line in marked)]))
    return "\n".join(slots)
