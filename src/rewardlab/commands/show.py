"""Show a method, or a stack: idea, composed formula, changes, claim and verdict, flags.

rewardlab show grpo
rewardlab show grpo+a+b
rewardlab show grpo --rows

The method is imported and its recipe built, so a file outside rewardlab (REWARDLAB_METHODS) is run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.data.columns import Data

HELP = "show a method: idea, formula, changes, claim and result, flags"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    parser.add_argument("--rows", action="store_true", help="print template rows of training data, one a line")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.registry import names

    # before torch is imported
    names.check_methods(args.method)
    if args.rows:
        return {"name": args.method, "rows": _template(args.method).rows}

    from rewardlab.comparisons import league_records
    from rewardlab.comparisons.telling import stands
    from rewardlab.registry import details

    return {**details.details(args.method), "leagues": stands(args.method, league_records.recorded())}


def show(document: Mapping[str, Any]) -> None:
    if "rows" in document:
        print(_template(document["name"]).jsonl(), end="")
        return

    from rewardlab.commands.tables import facts, heading, lines

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
    if document["leagues"]:
        heading("Leagues")
        lines("\n".join(document["leagues"]))
    _data(document)
    _flags(document["parameters"])
    if document["episodes"]:
        heading("Episodes, where something answers the replies (docs/ENVIRONMENTS.md)")
        facts(document["episodes"])
    if document.get("reference"):
        heading("Source")
        lines(f"{document['reference']}\n{document['path']}")


def _template(method: str) -> Data:
    from rewardlab import registry
    from rewardlab.errors import RewardlabError

    data = registry.data_of(method)
    if data is None:
        raise RewardlabError(f"{method} states no rows of its own: it reads prompts, with answers where its reward compares them")
    if data.refuses:
        raise RewardlabError(f"{method} takes no rows of text: {data.refuses}")
    return data


def _data(document: Mapping[str, Any]) -> None:
    """The columns that it reads, and how it is run on rows that have them."""
    from rewardlab.commands.tables import heading, lines, table
    from rewardlab.data.columns import Data

    if not (stated := document.get("data")):
        return
    heading("Data")
    if stated["refuses"]:
        lines(stated["refuses"])
        return
    columns = Data.from_json(stated).columns.items()
    rows = [(name, c.says, "in some rows" if c.some else "may be left out" if c.optional else "") for name, c in columns]
    table(("column", "holds", ""), rows)
    lines(f"{document['command']}\ntemplate rows: rewardlab show {document['name']} --rows > rows.jsonl")


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
