"""Judge replies in a file by a verifier: rows {"response", "answer", ...} get "correct", "extracted" and "why".

rewardlab verify math --in replies.jsonl --out judged.jsonl
rewardlab verify code --in programs.jsonl --out judged.jsonl --seconds 10
rewardlab verify mine.py:score --in replies.jsonl --out judged.jsonl
rewardlab verify exact_match --in replies.csv --out - --response-column reply --answer-column gold

KIND may be a served model, openai:http://localhost:8000/v1#my-judge, which compares the answers (verify judged_answer --help).
With --workers ray:32, 32 processes of a Ray cluster judge (`ray`: one on each core); without it, those of this machine.

"correct" is true, false, or null if there is no verdict; of a function of your own (docs/REWARDS.md), whether it pays at least 1.
Settings of the verifier are flags: rewardlab verify KIND --help.
Exit code: 0 if every line was judged, 1 if a line is broken or no row got a verdict. --out may be the file of --in.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Mapping
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.commands.flags import workers_flag
from rewardlab.errors import RewardlabError, unknown

HELP = "judge replies in a file by a verifier"
SETTINGS = True
SHOWN = 10
"""Broken lines that are printed; --json has all of them, and so has the output."""


def flags(parser: argparse.ArgumentParser) -> None:
    from rewardlab import registry

    kinds = "\n".join(f"  {name:<22}{about}" for name, about in registry.verifiers().items())
    parser.description = f"{parser.description}\n\nverifiers:\n{kinds}"
    kinds_told = "a verifier, as listed above, FILE.py:FUNCTION of your own, or openai:URL#NAME (served)"
    parser.add_argument("kind", metavar="KIND", help=kinds_told)
    parser.add_argument("--in", dest="source", metavar="FILE", required=True, help="JSON lines, .csv or .parquet; - for stdin")
    parser.add_argument("--out", metavar="FILE", required=True, help="JSON lines, one for each line of --in; - for stdout")
    workers_flag(parser)
    for column, holds in (("response", "replies"), ("answer", "gold answers"), ("prompt", "prompts")):
        text = f"column of the {holds} (default: {column})"
        parser.add_argument(f"--{column}-column", metavar="NAME", default=column, help=text)


def help_of(words: list[str]) -> str:
    """What `verify KIND --help` adds: the verifier's docstring and its settings."""
    from rewardlab.commands.parts import details
    from rewardlab.registry import browse

    found = [entry for entry in browse.entries("verifier") if entry["name"] in words]
    with contextlib.redirect_stdout(text := io.StringIO()):
        for entry in found:
            details(entry, flags=True)
    return text.getvalue()


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import registry
    from rewardlab.registry import names

    # before torch is imported
    if names.SOURCE.fullmatch(args.kind):
        names.check_source(args.kind)
    elif args.kind not in (known := registry.verifiers()) and not is_served(args.kind):
        raise unknown("verifier", args.kind, known)

    from rewardlab.api import verify as verifying
    from rewardlab.commands.flags import setting_names
    from rewardlab.data.files import STREAM

    if args.json and args.out == STREAM:
        raise RewardlabError("--json and --out - would both write to stdout; give --out a file")
    columns = {name: getattr(args, name) for name in ("response_column", "answer_column", "prompt_column")}
    return verifying.verify_file(args.kind, args.source, args.out, setting_names(args.settings), workers=args.workers, **columns)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    # with --out -, stdout is for the rows alone
    with contextlib.redirect_stdout(sys.stderr) if document["out"] == "-" else contextlib.nullcontext():
        facts({k: v for k, v in document.items() if k not in ("broken_lines", "no_verdict_because")})
        if not document["rows"]:
            print("the input has no rows")
        if _unjudged(document):
            print(f"no row got a verdict, most often because: {document['no_verdict_because']}", file=sys.stderr)
        for line in document["broken_lines"][:SHOWN]:
            print(f"broken: {line}")
        if len(document["broken_lines"]) > SHOWN:
            print(f'and {len(document["broken_lines"]) - SHOWN} more: see the rows with "correct": null')


def exit_code(document: Mapping[str, Any]) -> int:
    # verdicts do not count, but a script must hear of rows that were not judged
    return 1 if document["broken"] or _unjudged(document) else 0


def _unjudged(document: Mapping[str, Any]) -> bool:
    """Whether there are rows and no verdict on any."""
    return bool(document["no_verdict"]) and not document["right"] and not document["wrong"]
