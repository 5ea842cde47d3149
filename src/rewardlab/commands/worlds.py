"""List the worlds of claims, with measurements: the start, and what GRPO reaches in 40 updates.

rewardlab worlds
rewardlab worlds biased --check

start: the share of right replies before training (for graded tasks the mean grade) by one sample, greedily, and by a majority of 8.
reached: the same by one sample after GRPO, the mean of 3 seeds; noise: their standard deviation; left: of the range above.
checkable: what of a reply can be checked on its own. seconds: of the processor, for all of it. With --check it is measured again,
which takes minutes a world, and written to the package's results (in a checkout), or to results/worlds.
"""

from __future__ import annotations

import argparse
from typing import Any

HELP = "list the worlds of claims, with measurements"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("world", nargs="?", metavar="NAME", help="one world (default: all)")
    parser.add_argument("--check", action="store_true", help="measure again, and write the record")
    parser.add_argument("--start-only", action="store_true", help="with --check: measure only the start, without GRPO")


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rewardlab.checks import worlds
    from rewardlab.errors import RewardlabError

    if args.world:
        worlds.world(args.world)
    if args.check:
        from rewardlab.checks import probe

        probe.check_all([args.world] if args.world else [], start_only=args.start_only)
    elif args.start_only:
        raise RewardlabError("--start-only says how to measure: it goes with --check")
    return worlds.listed(args.world)


def show(document: list[dict[str, Any]]) -> None:
    from rewardlab.commands.tables import lines, table

    columns = ("world", "start", "greedy", "majority", "reached", "noise", "left", "lr", "checkable", "seconds")
    table(columns, [_row(row) for row in document])
    for row in document:
        remarks = "; ".join((row["measured"] or {}).get("remarks", ())) or "fit"
        lines(f"{row['name']}: {row['task']}\n  for {row['fit_for']}\n  {remarks if row['measured'] else 'not measured'}")


def _row(row: dict[str, Any]) -> list[Any]:
    found = row["measured"]
    if found is None:
        return [row["name"], *[""] * 9]
    start = (found["start"][name] for name in ("single", "greedy", "majority"))
    return [row["name"], *start, *(found[name] for name in ("reached", "noise", "left", "lr", "steps", "seconds"))]
