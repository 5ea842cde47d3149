"""An audit as terminal output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from rewardlab.audit.wording import comparison_text, facts, quoted, result_text, timing, verdict

STYLES = {"fault": "bold red", "warning": "yellow", "note": "cyan"}


def show_audit(document: Mapping[str, Any]) -> None:
    console = Console(soft_wrap=True)
    colour = {"faults": "red", "clean": "green", "unfinished": "yellow"}[document["verdict"]]
    console.print(Text.assemble((f"\n{document['target']}", "bold"), "   ", (verdict(document), f"bold {colour}")))
    for fact in facts(document):
        console.print(Text(f"  {fact}", style="dim"))
    for finding in document["findings"]:
        if finding["severity"] != "ok":
            _finding(console, finding)
    if document["speed"]:
        console.print(Text(f"\n  {timing(document['speed'])}"))
    example = next((e for f in document["findings"] for e in f["examples"]), None)
    if example:
        console.print(Text(f"  replay an example: rewardlab audit '{document['target']}' --replay {example['id']}", style="dim"))
    if "report" in document:
        console.print(Text(f"  report: {document['report']}"))


def _finding(console: Console, finding: Mapping[str, Any]) -> None:
    severity = finding["severity"]
    how_often = f"  {finding['failed']} of {finding['of']}" if finding["of"] else ""
    console.print(Text.assemble(("\n"), (f"{severity:<8}", STYLES[severity]), (finding["says"], "bold"), (how_often, "dim")))
    for example in finding["examples"][:1]:
        console.print(Text(f"        {quoted(example['response'], 160)}"))
        if "swapped" in example:
            console.print(Text(f"        against {quoted(str(example['meta']['second']), 160)}"))
        console.print(Text(f"        {result_text(example)} · {comparison_text(example)}  [{example['id']}]", style="dim"))


def show_replay(document: Mapping[str, Any]) -> None:
    console = Console(soft_wrap=True)
    record = document["replayed"]
    for name in ("prompt", "answer", "response"):
        console.print(Text.assemble((f"{name:<9}", "bold"), quoted(str(record.get(name, "")), 400)))
    console.print(Text.assemble(("then     ", "bold"), result_text(document["then"])))
    console.print(Text.assemble(("now      ", "bold"), result_text(document["now"])))
    console.print("unchanged" if document["unchanged"] else "changed")
