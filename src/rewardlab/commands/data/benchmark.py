"""Make rows of pairs of a published benchmark of rewards, to train a judge or a reward model on its labels.

rewardlab data benchmark pandalm --out pandalm
rewardlab train rm_r1 --task pandalm --model hf:FOLDER
rewardlab data benchmark judgebench --data gpt-4o.jsonl --held-out 0.2 --out judged

OUT/train.jsonl and OUT/test.jsonl hold a row (prompt, chosen, rejected) for each pair of replies that differ in worth; no prompt is
in both. Where several people judged a pair (PandaLM has three annotators), chosen_score and rejected_score count who preferred each
reply, which `bradley_terry --labels votes` reads. Ties and pairs with an empty reply are left out, and counted. `rewardlab
scoreboard --list` names the benchmarks. One that was trained on is no held-out benchmark any more.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.settings.domain import SHARE

HELP = "make training rows of pairs of a published benchmark of rewards"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="BENCHMARK", help="a benchmark of replies: pandalm, llmbar, judgebench ...")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for train.jsonl and test.jsonl")
    parser.add_argument("--data", metavar="FILE", help="a file or folder in the published format, or hf:OWNER/NAME[:SPLIT]")
    read = functools.partial(shared.read, "--held-out", SHARE)
    parser.add_argument("--held-out", type=read, metavar="SHARE", default=0.1, help="share of prompts held out (default 0.1)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.benchmark_rows_file(args.name, args.out, args.data, args.held_out)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    facts({k: v for k, v in document.items() if k != "warning" and v not in ({}, None)})
    print(f"warning: {document['warning']}")
