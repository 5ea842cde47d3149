"""Run the claim of a method against its baseline, in pairs, and record the result.

rewardlab reproduce dr_grpo
rewardlab reproduce dr_grpo --dev --seeds 3
rewardlab reproduce dr_grpo --dev --rates 1e-4,3e-4,1e-3
rewardlab reproduce sotopia_rl --canary
rewardlab reproduce --all

Pairs of runs are looked at after 5, 8, 12 and 20, until the 98.4% t interval of their effects is clear: above 0 with a mean that
reaches the margin (holds), above 0 and below the margin (smaller), within the margin (no effect), or below 0 (reversed). Where the
baseline does not learn, or the fault that the method mends is absent, the world is unfit and nothing is said about the method.
A margin counts for no less than one standard deviation of the effect between seeds.

Recorded runs use seeds 100 and up, and each further version of a claim the next hundred: version 2 begins at 200. Baseline runs
are kept in the cache and serve every claim of the same world. A command that was stopped is given again: it resumes after the last
run that had finished, and the pairs that it had stay in the record, as stopped.

The first two steps of both sides are kept with a record. --canary runs them again, in a minute: where the numbers are equal, code
that has changed since computes the same, and the record is confirmed; where they are others, the exit status is 1. Records from
before first steps were kept have none, and are refused: the whole claim must be run again.

Results are appended to NAME.json: for a method of the package in src/rewardlab/results/ of a checkout, or results/ of the working
folder; for one of your own in results/ beside its file; or for all in $REWARDLAB_RESULTS. The last line says which file it was.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.commands.tables import number
from rewardlab.settings.domain import RATES

HELP = "run a method's claim against its baseline, and record the verdict"
GUARDED = {True: "kept", False: "broken", None: "it takes more pairs to tell"}
MOVED = {True: "moved", False: "inert here"}
BARS = "▁▂▃▄▅▆▇█"


def flags(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("method", nargs="?", metavar="METHOD", help="a method with a claim")
    which.add_argument("--all", action="store_true", help="every claim without a record of the present code")
    shared.number_flag(parser, "seeds", "maximum pairs of runs (default 20; with --dev the exact number, 5)")
    parser.add_argument("--dev", action="store_true", help="development: seeds from 0 instead of 100, and no record")
    parser.add_argument(
        "--canary", action="store_true", help="run the first two steps of a record again, and compare their numbers"
    )
    shared.number_flag(
        parser, "rates", "with --dev: run both sides at these learning rates, on 2 seeds, and show which suits each", RATES, "A,B,C"
    )
    shared.number_flag(parser, "jobs", "runs at a time (default: as many as there are cores)")
    shared.config_flag(parser, "device", default="auto")


def run(args: argparse.Namespace) -> dict[str, Any] | list[dict[str, Any]]:
    from rewardlab.checks import rates, reproduce
    from rewardlab.checks.verdict import LOOKS, PAIRS
    from rewardlab.errors import RewardlabError

    if args.canary:
        from rewardlab.checks import canary

        if args.dev or args.rates:
            raise RewardlabError("--canary runs what is recorded again: it goes with no --dev and no --rates")
        return canary.canaries(device=args.device) if args.all else canary.canary(args.method, device=args.device)
    if args.rates:
        if not args.dev or args.all:
            raise RewardlabError("--rates is for development: rewardlab reproduce METHOD --dev --rates 1e-4,3e-4")
        return rates.rates(args.method, args.rates, range(args.seeds or len(rates.SEEDS)), jobs=args.jobs, device=args.device)
    if args.dev:
        # seeds that no record uses: methods are tuned on them
        seeds = range(args.seeds or PAIRS)
        do = reproduce.reproduce_all if args.all else functools.partial(reproduce.reproduce, args.method)
        return do(seeds, jobs=args.jobs, device=args.device)
    if args.all:
        return reproduce.reproduce_all(pairs=args.seeds or LOOKS[-1], jobs=args.jobs, device=args.device)
    return reproduce.reproduce(args.method, pairs=args.seeds or LOOKS[-1], jobs=args.jobs, device=args.device)


def show(document: dict[str, Any] | list[dict[str, Any]]) -> None:
    rows = document if isinstance(document, list) else [document]
    if rows and all("differs" in row for row in rows):
        _show_canaries(rows)
    elif isinstance(document, list):
        _show_all(document)
    elif "rates" in document:
        _show_rates(document)
    else:
        _show_card(document)


def exit_code(document: dict[str, Any] | list[dict[str, Any]]) -> int:
    """0 whatever the verdict is; 1 if there is none because a run failed, and where first steps are others, or none is known."""
    records = document if isinstance(document, list) else [document]
    if records and all("differs" in row for row in records):
        from rewardlab.checks.canary import OTHER, UNKNOWN

        found = [row["canary"] for row in records]
        return int(OTHER in found or set(found) == {UNKNOWN})
    return 1 if any(record.get("verdict") in ("incomplete", "not run") for record in records) else 0


def _show_canaries(rows: list[dict[str, Any]]) -> None:
    from rewardlab.commands.tables import heading, lines, table

    heading("first steps, run again")
    words = {True: "of this code", False: "of other code"}
    table(("method", "they are", "record"), [(row["name"], row["canary"], words[row["fresh"]]) for row in rows])
    for row in rows:
        if told := [*row["differs"][:5], *filter(None, [row.get("error")])]:
            lines(f"{row['name']}: {'; '.join(told)}")


# ---- one claim: a card -----------------------------------------------------------------------------------------------


def _show_card(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading, lines, table

    claim = document["claim"]
    heading(f"{document['name']}: {claim['says']}")
    facts(_world(claim))
    if document["gate"]:
        heading("gate")
        table(("", "condition", "measured", "needed"), [_check(check) for check in document["gate"]])
    _show_curves(document["curves"])
    heading("pairs")
    table(("seed", "method", *(["baseline"] if document["baseline"] else []), "effect"), _pairs(document))
    lines(_sentence(document))
    for found, words in (("guard", GUARDED), ("kept", GUARDED), ("moved", MOVED)):
        # records from before these were told lack them
        if (beside := document.get(found)) is not None:
            lines(f"{beside['what']}: {_signed(beside['value'])}, needed {beside['needs']}: {words[beside['ok']]}")
    _show_power(document)
    lines(_cost(document))
    lines(f"recorded in {document['recorded']}" if document.get("recorded") else "not recorded: a run for development")


def _world(claim: Mapping[str, Any]) -> dict[str, Any]:
    """What is measured, in which direction, against what and in which world."""
    against = claim["versus"] or claim["against"] or "0"
    settings = {k: v for k, v in (("method", claim["settings"]), ("baseline", claim["versus_settings"])) if v}
    length = f"{claim['steps']} steps" if claim["steps"] else f"{claim['budget']:,} tokens" if claim["budget"] else "as set"
    told = {
        "measure": f"{claim['measure']}, to be {claim['direction']}, against {against}", "world": claim["task"],
        "each side": f"{length}, {claim['problems']} held-out problems", "settings": settings, "tried": claim["tried"],
        "finding": claim["finding"], "replaces": claim["replaces"],
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _check(check: Mapping[str, Any]) -> list[Any]:
    return ["ok" if check["ok"] else "NO", check["what"], check["value"], check["needs"]]


def _show_curves(curves: Mapping[str, Mapping[str, list[float]]]) -> None:
    """The mean learning curves of both sides, on one scale, as bars."""
    from rewardlab.commands.tables import heading, lines

    for name in dict.fromkeys(name for side in curves.values() for name in side):
        drawn = {side: values[name] for side, values in curves.items() if values.get(name)}
        low, high = (f(x for curve in drawn.values() for x in curve) for f in (min, max))
        heading(f"{name} in training")
        for side, curve in drawn.items():
            bars = "".join(BARS[round((x - low) / (high - low) * (len(BARS) - 1)) if high > low else 0] for x in curve)
            lines(f"{side:<9} {number(curve[0])} {bars} {number(curve[-1])}")


def _sentence(document: Mapping[str, Any]) -> str:
    interval = f"{document['inside']:.1%} interval {' to '.join(_signed(bound) for bound in document['interval'])}"
    pairs, margin, counts = document["looks"][-1]["pairs"], document["claim"]["margin"], document["margin"] or 0.0
    raised = f", raised to {number(counts)}, one sd of a pair" if counts > margin else ""
    return f"effect {_signed(document['effect'])}, {interval}, margin {margin:g}{raised}: {document['verdict']} ({pairs} pairs)"


def _show_power(document: Mapping[str, Any]) -> None:
    """For development: whether the margin suits the effect and its spread."""
    from rewardlab.checks.rates import AIM, power
    from rewardlab.commands.tables import lines

    if document.get("recorded") or (sum_ := power(document["effects"])) is None:
        return
    ratio = "without spread" if sum_["ratio"] is None else f"{sum_['ratio']:.1f} sd (aim at {AIM:g})"
    spread, margin = number(sum_["sd"]), number(sum_["margin"])
    lines(f"power: effect {_signed(sum_['effect'])}, sd of a pair {spread}, {ratio}; margin by rule {margin}")


def _cost(document: Mapping[str, Any]) -> str:
    told = [f"{document['seconds']:.0f} s"]
    for what, unit in (("updates", "updates"), ("spent", "tokens")):
        if counts := document.get(what):
            told.append(f"{unit} per run: " + ", ".join(f"{side} {count:,}" for side, count in counts.items()))
    return "; ".join(told)


def _pairs(document: Mapping[str, Any]) -> list[list[Any]]:
    """One row for each seed: the numbers of both sides, and their effect."""
    sides = [document[side] for side in ("method", "baseline") if document[side]]
    # a failed run shows its error in place of its number
    numbers = [[run.get(document["measure"], run.get("error")) for run in side] for side in sides]
    return [list(row) for row in zip(document["seeds"], *numbers, map(_signed, document["effects"]), strict=True)]


# ---- several claims, and rates ---------------------------------------------------------------------------------------


def _show_all(documents: list[dict[str, Any]]) -> None:
    from rewardlab.commands.tables import table

    columns = ("name", "measure", "effect", "interval", "margin", "pairs", "verdict")
    table(columns, [_row(record) for record in documents])


def _row(record: Mapping[str, Any]) -> list[Any]:
    """One claim as a row of the table of `reproduce --all`."""
    # a claim that could not be run has an error instead of an effect
    if "effect" not in record:
        return [record["name"], record["measure"], "", "", "", "", f"{record['verdict']}: {record['error']}"]
    # records of older versions have a 95% interval
    interval = " to ".join(_signed(bound) for bound in record.get("interval") or record["ci95"])
    effect, margin, pairs = _signed(record["effect"]), record["claim"]["margin"], len(record["effects"])
    return [record["name"], record["measure"], effect, interval, margin, pairs, record["verdict"]]


def _show_rates(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, lines, table

    heading(f"{document['name']} on {document['task']}: means over seeds {', '.join(map(str, document['seeds']))}")
    names = [name for name in document["rates"][0] if name not in ("side", "name", "error")]
    table(("side", "method", *names), [[row["side"], row["name"], *(row[name] for name in names)] for row in document["rates"]])
    for row in document["rates"]:
        if row.get("error"):
            lines(f"{row['name']} at {row['rate']:g} failed: {row['error']}")
    chosen = ", ".join(f"{side} {rate:g}" for side, rate in document["chosen"].items() if rate)
    lines(f"best {document['chosen_by']}: {chosen}")
    for side, rates in document["tied"].items():
        lines(f"nothing told the rates {', '.join(f'{rate:g}' for rate in rates)} of the {side} apart")


def _signed(value: float | None) -> str:
    return "?" if value is None else number(value, sign=True)
