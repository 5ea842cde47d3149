"""Diagnose a run from its log, with the number and a remedy for each symptom: a run of ours, of TRL or of verl.

  rewardlab diagnose runs/mine
  rewardlab diagnose trl_output
  rewardlab diagnose verl_metrics.jsonl
  rewardlab diagnose verl_console.log

Of TRL, the output folder, whose newest trainer_state.json is read; of verl, the file that trainer.logger=["console","file"] wrote,
or what its console logger printed.

Entropy collapse, length creep, groups without signal, replies cut off, clipped share, sampler/trainer mismatch, reward hacking,
dead terms, KL explosion, broken numbers, a held-out measure past its best, and runs in which nothing is learnt. What the log
lacks the numbers for is named as not checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELP = "diagnose a run: ours, TRL's or verl's"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="a run folder, TRL's output folder or trainer_state.json, or a JSONL log"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.report.diagnosis import diagnose

    return diagnose(args.run)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, lines

    found = document["findings"]
    heading(f"{len(found) or 'no'} finding{'s' * (len(found) != 1)} in {document['steps']} steps ({document['source']})")
    for finding in found:
        lines(f"{finding['name']}: {finding['text']}")
        lines(f"    try: {finding['remedy']}.")
    lines(f"checked: {', '.join(document['checked']) or 'nothing'}")
    for what, least in document["too_short"].items():
        lines(f"not checked: {what}, which takes {least} steps or more")
    for what, names in document["not_checked"].items():
        lines(f"not checked: {what}, since the log has no {' or '.join(names)}")
