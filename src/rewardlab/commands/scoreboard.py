"""Score reward models, process reward models, judges and formulas on benchmarks of rewards, and compare them.

  rewardlab scoreboard my-reward-model --on rm-bench,judgebench,llmbar
  rewardlab scoreboard judge:smollm2 likelihood:smollm2 length --on llmbar --limit 100 --out board
  rewardlab scoreboard outputs:judgments.jsonl.gz --on judgebench --against published
  rewardlab scoreboard runs/rm ORG/MODEL --on rm-bench --data chat_filtered.json
  rewardlab scoreboard runs/rm length --on pairs --data hf:OWNER/NAME:test

A rater is a checkpoint (a sequence classifier or a process reward model), likelihood:MODEL, implicit:MODEL?reference=OTHER,
judge:MODEL (local, or judge:openai:URL#NAME), outputs:FILE (verdicts of others), a reward, or FILE.py:FUNCTION. Without --on, all
benchmarks whose data is at hand. What was scored before is not scored again; stopped, it resumes. An item on which a rater fails
counts as no verdict; a rater that fails altogether is left out, and the exit code is 1.

Intervals are of a bootstrap over prompts; differences of all raters on all benchmarks are decided together (Holm).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import POSITIVE

HELP = "score reward models, judges and process reward models on benchmarks of rewards"
FIELDS = ("device", "dtype", "seed")
MOST = 40
"""Differences that are printed."""
STEPS = ": a process reward model does (PATH, or PATH?as=CONVENTION), and judge:MODEL?kind=verdict"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "raters", nargs="*", metavar="RATER", help="a checkpoint, likelihood:, implicit:, judge:, outputs:, a reward"
    )
    parser.add_argument("--on", metavar="NAMES", help="benchmarks, with commas (default: all whose data is at hand)")
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="a file or folder in the published format, of one benchmark, or hf:OWNER/NAME[:SPLIT] of the hub",
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the page, the table, the verdicts and model cards")
    parser.add_argument(
        "--limit",
        type=limits,
        metavar="N[,NAME=N]",
        help="items of each benchmark, chosen by chance, and of the one named: 60,rm-bench=20, or rm-bench=20 (default: all)",
    )
    parser.add_argument("--against", choices=("published",), help="show the figures of papers beside")
    parser.add_argument("--list", action="store_true", help="list the benchmarks, and where their data is")
    shared.workers_flag(parser)
    shared.config_flags(parser, FIELDS)


def limits(text: str) -> dict[str, int]:
    """Items asked of each benchmark (""), where a number stands alone, and of those that are named. Raises RewardlabError."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = map(str.strip, part.rpartition("="))
        if name in found:
            raise RewardlabError(f"--limit {text} has two numbers {f'for {name}' if name else 'without a name'}: 60,rm-bench=20")
        found[name] = shared.read("--limit", POSITIVE, count)
    return found


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.scoreboard.asked import at_hand, with_data
    from rewardlab.scoreboard.run import scoreboard

    if args.list:
        return {"benchmarks": at_hand()}
    if not args.raters:
        raise RewardlabError(
            "name a rater: a checkpoint, a run, judge:MODEL, length, FILE.py:FUNCTION (rewardlab scoreboard --help)"
        )
    if args.data and not args.on:
        raise RewardlabError(f"say which benchmark {args.data} holds: --on pairs for pairs of your own, or a name of --list")
    on = list(dict.fromkeys(name.strip() for name in args.on.split(",") if name.strip())) if args.on else with_data()
    return scoreboard(
        args.raters, on, data=args.data, out=args.out, limit=args.limit, against_published=args.against == "published",
        workers=args.workers, **shared.given(args, FIELDS),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import table

    if "raters" not in document:
        rows = [[name, x["title"], x["items"] or "", x["where"]] for name, x in document["benchmarks"].items()]
        table(("benchmark", "title", "items", "data"), rows)
        return
    for name, about in document["benchmarks"].items():
        _benchmark(name, about, document)
    _differences(document)
    _left_out(document)
    if published := [name for name in document["benchmarks"] if name != "pairs"]:
        print(f"\nwhat the figures mean: rewardlab show {published[0]}")
    if document.get("out"):
        print(f"\npage, table, verdicts and model cards: {document['out']}")


def _benchmark(name: str, about: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading

    entries = {rater: row[name] for rater, row in document["raters"].items() if name in row}
    some = f" of {about['of']:,}" if about["of"] > about["items"] else ""
    plural = "s" * (max(about["of"], about["items"]) != 1)
    heading(f"{about['title']}: {about['items']:,}{some} item{plural}{', without ' + about['lacks'] if about['lacks'] else ''}")
    rows = about["of"] + about["equal"] + about["other"]
    if about["equal"]:
        print(f"{about['equal']:,} of {rows:,} rows are equal to an earlier one, with which they count once")
    if about["other"]:
        print(
            f"{about['other']:,} of {rows:,} rows have the id of an earlier row, which is another one, and are left out "
            f"(first {about['other_where']})"
        )
    if not entries and any(row["benchmark"] in ("", name) for row in document["failed"]):
        print("no figures: what was asked is left out, for the reasons below")
        return
    if not entries:
        print(f"none of these raters scores {about['asks']}{STEPS if about['asks'] == 'steps' else ''}")
        return
    published = [row for row in document.get("published", ()) if row["benchmark"] == name]
    _figures(about, entries, published)
    _untold(about, entries)
    # a table with long names of sources would be cut on most terminals
    for source in dict.fromkeys(row["source"] for row in published):
        print(f"published: {source}{'; figures of papers are of the whole benchmark' if some else ''}")
    if "published" in document and not published:
        print("no figures of papers are known here")
    _without_verdict(entries)
    biases = list(dict.fromkeys(bias for entry in entries.values() for bias in entry["biases"]))
    if biases:
        rows = [[rater, *(_plain(entry["biases"].get(bias)) for bias in biases)] for rater, entry in entries.items()]
        _narrow(("rater", *(bias.replace("_", " ") for bias in biases)), rows)


def _untold(about: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Why the headline is not there, or is not of all that it is of as a rule."""
    headline, more = about["headline"], "; more items may tell more: a larger --limit" if about["of"] > about["items"] else ""
    if about["lacking"]:
        print(f"{about['lacking']}{more}")
    elif not any(headline in entry["figures"] for entry in entries.values()):
        print(f"these items do not tell {headline.replace('_', ' ')}, so that it is left out{more}")


def _figures(about: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]], published: Sequence[Mapping[str, Any]]) -> None:
    """The table of a benchmark: its raters, those of papers, and what guessing gives."""
    figures = list(dict.fromkeys((about["headline"], *(f for entry in entries.values() for f in entry["figures"]))))
    rows = [
        [
            f"{rater} (blind)" if entry.get("blind") else rater,
            *(_figure(entry["figures"].get(f)) for f in figures),
            # verdicts of others may be about some items
            f"{entry['items']:,}" if entry["items"] < about["items"] else "",
            *_beside(entry),
        ]
        for rater, entry in entries.items()
    ]
    beside = {f"{row['rater']} (published)": row["figures"] for row in published}
    beside |= {"by guessing": about["chance"]} if about["chance"] else {}
    rows += [[who, *(_plain(known.get(f)) for f in figures), "", "", "", ""] for who, known in beside.items()]
    _narrow(("rater", *figures, "items", "no verdict", "failed", "cut off"), rows)


def _without_verdict(entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Why raters gave no verdict on some items, and on which they failed."""
    for rater, entry in entries.items():
        if entry["no_verdict"] and entry["why"]:
            print(f"no verdict of {rater}: {entry['why']} (first on {entry['where']})")
        if entry["failed"]:
            on = f"{entry['failed']:,} item{'s' * (entry['failed'] != 1)}, first on {entry['failure_where']}"
            print(f"{rater} failed on {on}: {entry['failure']}; what failed counts as no verdict, and is asked again next time")


def _narrow(names: Sequence[str], rows: list[list[str]]) -> None:
    """A table with a row a rater, or with a row a figure where there are more figures than raters; without empty ones."""
    from rewardlab.commands.tables import table

    kept = [k for k in range(len(names)) if k == 0 or any(row[k] for row in rows)]
    names, rows = [names[k] for k in kept], [[row[k] for k in kept] for row in rows]
    if len(names) > len(rows) + 4:
        names, *rows = [[row[k] for row in ([*names], *rows)] for k in range(len(names))]
    table(names, rows)


def _differences(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, table
    from rewardlab.scoreboard.figures import LEAST_PROMPTS

    if not document["differences"]:
        return
    heading("Differences in the first figure, decided together")
    rows = [
        [d["benchmark"], d["better"], d["worse"], f"{100 * d['difference']:.1f}", "clear" if d["clear"] else "may be noise"]
        for d in sorted(document["differences"], key=lambda d: (d["benchmark"], -d["difference"]))
    ]
    table(("benchmark", "better", "worse", "points", ""), rows[:MOST])
    if len(rows) > MOST:
        clear = sum(d["clear"] for d in document["differences"])
        print(f"{MOST} of {len(rows):,} differences, of which {clear:,} are clear; all of them: --json, or --out")
    if few := dict.fromkeys(d["benchmark"] for d in document["differences"] if d["prompts"] < LEAST_PROMPTS):
        print(f"of fewer than {LEAST_PROMPTS} prompts no difference is called clear: {', '.join(few)}")


def _figure(x: Mapping[str, Any] | None) -> str:
    if x is None or x["value"] != x["value"]:
        return ""
    interval = f" [{100 * x['ci95'][0]:.0f}, {100 * x['ci95'][1]:.0f}]" if x["ci95"] else ""
    return f"{100 * x['value']:.1f}{interval}"


def _plain(x: float | None) -> str:
    return "" if x is None else f"{100 * x:.1f}"


def _beside(entry: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{entry[name]:,}" if entry[name] else "" for name in ("failed", "cut"))
    return (f"{entry['no_verdict']:.1%}" if entry["no_verdict"] else "", *counts)


def _left_out(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading
    from rewardlab.scoreboard.lost import told

    if document["failed"]:
        heading("Left out")
        for row in document["failed"]:
            print(told(row))


def exit_code(document: Mapping[str, Any]) -> int:
    """1 where a rater could not be asked, or failed on all items of a benchmark."""
    return int(bool(document.get("failed")))
