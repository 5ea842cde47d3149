"""See what fools a process reward model before it is trained on: style that should not matter, and reasoning that is broken.

rewardlab prm stress runs/prm --on solutions.jsonl
rewardlab prm stress Qwen/Qwen2.5-Math-PRM-7B --on processbench --form min --suffix 4

Right solutions of --on are changed. Of changes of style, a sound model's scores hardly move (the paper finds less than 0.1). Of
broken reasoning `passes` is the share of accepted solutions that are still accepted: near 0 for a sound model. A policy that learns
from the model will find what passes. --suffix N also searches N words that please it, at the end of wrong solutions. Then train,
and watch: rewardlab train grpo --reward prm:PATH --watch.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.settings.domain import COUNT, SHARE

HELP = "see what fools a process reward model: style, broken reasoning, words that please"
FIELDS = ("device", "dtype", "seed")


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, run or hub model; PATH?as=CONVENTION where it does not say which")
    parser.add_argument("--on", required=True, metavar="FILE", help="labelled solutions: a file, a folder, processbench, prmbench")
    text = "how scores of steps become one, as the model will be used (default min)"
    parser.add_argument("--form", choices=("min", "last", "product", "mean"), default="min", help=text)
    text = "score from which a solution is accepted (default 0.5)"
    shared.number_flag(parser, "threshold", text, SHARE, metavar="P", default=0.5)
    shared.number_flag(parser, "limit", "right solutions that are changed (default 200)", default=200)
    shared.number_flag(parser, "suffix", "words to search for at the end of wrong solutions (default 0)", COUNT, default=0)
    parser.add_argument("--format", default="auto", metavar="NAME", help="of the file (default: by its columns)")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.stress_scorer(
        args.model, args.on, form=args.form, threshold=args.threshold, limit=args.limit, suffix=args.suffix, format=args.format,
        **shared.given(args, FIELDS),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading

    facts({name: x for name, x in document.items() if name not in ("style", "logic", "suffix")})
    heading("Style: the reasoning stays, and so should the score")
    _table(document["style"], ("change", "solutions", "score", "moved", "ci95", "size"))
    heading("Logic: the reasoning is broken, and nothing should pass")
    _table(document["logic"], ("change", "solutions", "score", "moved", "ci95", "passes", "passes_ci95"))
    if found := document.get("suffix"):
        heading("Words that please, at the end of wrong solutions")
        facts(found)


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    from rewardlab.commands.tables import table

    table(columns, [[_cell(row.get(name)) for name in columns] for row in rows])


def _cell(value: Any) -> Any:
    if value is None:
        return "–"
    return [round(x, 3) for x in value] if isinstance(value, list | tuple) else value
