"""The model card of a rater: its figures on the benchmarks, in Markdown, to stand beside its weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from rewardlab.scoreboard.page import percent


def card(rater: str, document: Mapping[str, Any]) -> str:
    """A rater's part of a scoreboard."""
    parts = [f"# {rater}\n\nFigures of `rewardlab scoreboard`, in percent, with the 95% interval of a bootstrap over prompts.\n"]
    for name, entry in document["raters"][rater].items():
        about = document["benchmarks"][name]
        lacks = f", without {about['lacks']}" if about["lacks"] else ""
        rows = "".join(f"| {figure} | {percent(x['value'])} | {_interval(x)} |\n" for figure, x in entry["figures"].items())
        parts.append(
            f"## {about['title']}\n\n{entry['items']:,} items{lacks}.\n\n| figure | value | interval |\n| --- | --- | --- |\n{rows}"
        )
        parts.append(_remarks(entry))
    return "\n".join(filter(None, parts))


def _interval(x: Mapping[str, Any]) -> str:
    return f"{percent(x['ci95'][0])} to {percent(x['ci95'][1])}" if x["ci95"] else ""


def _remarks(entry: Mapping[str, Any]) -> str:
    biases = entry["biases"]
    lines = (
        [f"- no verdict on {percent(entry['no_verdict'])}% of the items: {entry['why'] or entry['failure']}"]
        if entry["no_verdict"]
        else []
    )
    lines += [f"- it failed on {entry['failed']:,} items: {entry['failure']}"] if entry["failed"] and entry["why"] else []
    lines += ["- blind: of prompts with images it reads the text alone"] if entry.get("blind") else []
    lines += [f"- {entry['cut']:,} replies were longer than it can read"] if entry["cut"] else []
    for one, other, what in (("longer", "shorter", "length"), ("styled", "plain", "Markdown")):
        a, b = biases.get(f"right_where_{one}"), biases.get(f"right_where_{other}")
        if a is not None and b is not None:
            lines.append(f"- {what}: right on {percent(a)}% where the better reply is the {one} one, else on {percent(b)}%")
    if "consistent" in biases:
        lines.append(f"- order: the same verdict in both orders on {percent(biases['consistent'])}% of pairs")
    return "\n".join(lines) + "\n" if lines else ""


def file_names(raters: Sequence[str]) -> dict[str, str]:
    """The name of each rater's card: letters, digits, dots and dashes of its name, and a number where another one has that."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for rater in raters:
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", rater).strip("-.")[-80:] or "rater"
        names = (f"{plain}{f'-{k}' if k > 1 else ''}.md" for k in count(1))
        found[rater] = next(name for name in names if name.lower() not in taken)
        taken.add(found[rater].lower())
    return found
