"""Judge replies in a file by a verifier: rows {"response", "answer", ...} get "correct", "extracted" and "why".

rewardlab verify math --in replies.jsonl --out judged.jsonl
rewardlab verify code --in programs.jsonl --out judged.jsonl --seconds 10

"correct" is true, false, or null if the verifier itself failed. Settings of the verifier are flags.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

HELP = "judge replies in a file by a verifier"
SETTINGS = True


def flags(parser: argparse.ArgumentParser) -> None:
    from rewardlab import registry

    kinds = "\n".join(f"  {name:<22}{about}" for name, about in registry.verifiers().items())
    parser.description = f"{parser.description}\n\nverifiers:\n{kinds}"
    parser.add_argument("kind", metavar="KIND", help="a verifier, as listed above")
    parser.add_argument("--in", dest="source", metavar="FILE.jsonl", required=True, help="rows with a response and an answer")
    parser.add_argument("--out", metavar="FILE.jsonl", required=True, help="file for the judged rows, in the same order")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.api import verify as verifying

    return verifying.verify_file(args.kind, args.source, args.out, args.settings)


def show(document: Mapping[str, Any]) -> None:
    from .tables import facts

    facts({k: v for k, v in document.items() if k != "passed_over"})
    # the first ten lines show what is wrong; --json has all of them
    for line in document["passed_over"][:10]:
        print(f"skipped {line}")


def exit_code(document: Mapping[str, Any]) -> int:
    # verdicts do not count: a file without one readable row is the only failure
    return 0 if document["rows"] else 1
