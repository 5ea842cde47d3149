"""List the methods: how much of the published method each is, what it is compared with, and the verdict on its claim or check.

No method is imported. Of how much each is: whole, core, reading (of a text that leaves the formula open), or - for not yet read
against the paper. A claim holds, or not; a check works, or not.
--family says which method of a family is better for what, by the record of its league.

rewardlab list
rewardlab list --folder baselines --json
rewardlab list --family length
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.comparisons.league import Member

HELP = "list the methods"
COLUMNS = (
    "name", "folder", "system", "kind", "reference", "baseline", "claim", "shows", "verdict", "fidelity", "left_out", "idea",
    "leagues",
)  # fmt: skip
UNREAD = "-"
"""In the place of how much of the published method a file is, where nobody has read it against the paper yet."""
NAME = 26
"""Width of the column of names, in characters; a longer name shifts the rest of its line to the right."""


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", metavar="F", help="only the methods of one folder")
    parser.add_argument("--family", metavar="LEAGUE", help="what the league of a family found (rewardlab league lists them)")


def run(args: argparse.Namespace) -> Any:
    from rewardlab import registry
    from rewardlab.errors import unknown

    if args.family:
        return _family(args.family)
    folders = {path.parent.name for path in registry.methods().values()}
    if args.folder and args.folder not in folders:
        raise unknown("folder", args.folder, folders)
    from rewardlab.comparisons import league_records
    from rewardlab.comparisons.telling import stands

    records = league_records.recorded()
    rows = ({**row, "leagues": stands(row["name"], records)} for row in registry.rows(args.folder))
    return [{k: row[k] for k in COLUMNS} for row in rows]


def _family(name: str) -> dict[str, Any]:
    """What the league of a family found, in sentences, and the command for one's own problems."""
    from rewardlab import registry
    from rewardlab.comparisons import league_records
    from rewardlab.comparisons.league import league
    from rewardlab.comparisons.telling import advice, sentences, standing_words

    found, record = league(name), league_records.read(name)
    told = (
        {"sentences": list(sentences(record)), "stands": standing_words(record), "advice": advice(found, record)} if record else {}
    )
    ideas = {row["name"]: row["idea"] for row in registry.rows()}
    members = {member.name: _idea(member, ideas) for member in found.members}
    return {
        "family": name, "question": found.question, "baseline": found.baseline, "members": members,
        "run": record and record["when"][:10], "unrun": (record or {}).get("unrun", []), **told,
        "command": f"rewardlab league {name} --task mine.jsonl --model path/to/checkpoint",
    }  # fmt: skip


def _idea(member: Member, ideas: Mapping[str, str]) -> str:
    """What a member is: its method's idea, or by which reward and settings it differs from a method of another name."""
    method = member.stack.rpartition("+")[2]
    settings = ", ".join(f"{name}={value}" for name, value in member.settings.items())
    paid = f" paid by {member.reward}" if member.reward else ""
    if member.name != method and (paid or (settings and not method.startswith(member.name.split()[0]))):
        return method + paid + (f" with {settings}" if settings else "")
    return ideas.get(method, "") + (f" One score of those of steps: {member.by}." if member.by else "")


def show(document: Any) -> None:
    """Folder by folder, for each method a line with its name, kind, fidelity, baseline and verdict, then its idea.

    Plain lines: a table of hundreds of rows would take longer to lay out than to read.
    """
    from rewardlab.commands.tables import wrapped

    if isinstance(document, dict):
        show_family(document)
        return
    for folder, rows in groupby(document, key=lambda row: row["folder"]):
        print(f"\n{folder}")
        for row in rows:
            against = f"against {row['baseline']}" if row["baseline"] else "a starting point"
            kind, fidelity = row["kind"], row["fidelity"] or UNREAD
            # a check and a claim say what they found in words of their own
            print(f"  {row['name']:<{NAME}}  {kind:<14}  {fidelity:<7}  {against:<26}  {row['verdict']}")
            wrapped("    ", row["idea"])
            for told in row["leagues"]:
                wrapped("    ", told)


def show_family(document: Mapping[str, Any]) -> None:
    """What the league found, its members, and the command for one's own problems."""
    from rewardlab.commands.tables import heading, listing, wrapped

    heading(document["question"])
    never = "Its league has not been run here yet, so nothing is known of who is better."
    for sentence in (document.get("advice", ""), *document.get("sentences", (never,))):
        if sentence:
            wrapped("  ", sentence)
    if document["unrun"]:
        wrapped("  ", f"Not run yet: {', '.join(document['unrun'])}.")
    print(f"\n  members, against {document['baseline']} (rewardlab show NAME):")
    listing(document["members"].items())
    print()
    wrapped("  on your own problems: ", document["command"])
