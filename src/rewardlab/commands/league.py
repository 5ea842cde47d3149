"""Run a league: the methods of a family in the same worlds, each at its own rate, decided together.

  rewardlab league
  rewardlab league length
  rewardlab league length --dry-run
  rewardlab league length --task mine.jsonl --model Qwen/Qwen3-0.6B --lora-rank 16 --seeds 5
  rewardlab league length --worlds overthinking --members hapo,laser
  rewardlab league agents --task mine.jsonl --model smollm2 --corpus docs.jsonl --members igpo,spa_rl --seeds 5
  rewardlab league objectives --task mine.jsonl --model smollm2 --tools mine.py:lookup --members rloo,gspo --seeds 5

Without NAME it lists the leagues, and who is better in them. What has been run already is read, what was stopped resumes.
--dry-run says how many runs a league will make; how long they take is told after the first, and which differences can be seen
once the baseline's rate is chosen.

The worlds, the outcome and the rates are fixed in leagues/NAME.py for all members. With --task (and --model) members meet on your
problems instead: the same comparison for your case, without a record in the package; there any other method joins by its name,
one of your own too (--members mine), with the league's settings as far as it takes them. With --corpus, --tools or --env replies
become episodes, for all members and in what is measured. --worlds runs some worlds now and the others later: each is decided by
itself, and the record keeps both.

A run's outcome is kept under a hash of all that decides it, its code among it: a member that is added later meets kept runs.
A league on recorded replies needs their data (REWARDLAB_DATA), a world that is an environment of others its package; without them,
the league's record is shown.

DIR holds league.json and league.html; without --out it is runs/league-NAME.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError

HELP = "methods of one family against one another, decided together"
OWN = (*shared.DATA, "model", "chat_template_kwargs", "lora_rank", "max_new", "engine", "engine_options", "reward_timeout")
"""Settings of a user's own problems and model."""


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("league", nargs="?", metavar="NAME", help="the league to run (default: list them)")
    parser.add_argument("--dry-run", action="store_true", help="say what it will take and tell, and run nothing")
    text = "of the members only these, and the baseline: hapo,laser; with --task any other method too"
    parser.add_argument("--members", metavar="LIST", help=text)
    parser.add_argument("--worlds", metavar="LIST", help="of the worlds only these")
    shared.number_flag(parser, "seeds", "seeds on which members meet (default: the league's, mostly 8)")
    shared.number_flag(parser, "jobs", "runs at a time (default: one a core; of a real model one a GPU, or as many as fit)")
    shared.config_flag(parser, "steps", help="updates of each run (default: the league's)")
    shared.config_flag(parser, "eval_problems", help="held-out problems (default: the league's)")
    parser.add_argument("--rates", metavar="LIST", help="learning rates to choose from (default: the league's)")
    shared.reward_flag(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write (default: runs/league-NAME)")
    shared.config_flag(parser, "device")
    shared.environment_flags(parser)
    shared.config_flags(parser, OWN)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.comparisons import league_records
    from rewardlab.comparisons.league import league, leagues

    if not args.league:
        return {"leagues": [listed(name, league_records.read(name)) for name in leagues()]}
    season, changed = season_of(args, league(args.league))
    if args.task:
        from rewardlab.comparisons import own_check, side_by_side

        own_check.check(season, args.dry_run)
        season = side_by_side.with_crew(season)
    return planned(args, season) if args.dry_run else played(args, season, changed)


def listed(name: str, record: Mapping[str, Any] | None) -> dict[str, Any]:
    from rewardlab.comparisons.guide import who
    from rewardlab.comparisons.league import league
    from rewardlab.comparisons.words import BETTER

    found = league(name)
    better = {
        world["name"]: [row["member"] for row in world["rows"] if row["standing"]["word"] == BETTER]
        for world in (record["worlds"] if record else ())
    }
    return {
        "league": name, "question": found.question, "members": len(found.members), "run": record and record["when"][:10],
        "better": better, "told": who(BETTER, record) if record else "",
    }  # fmt: skip


def season_of(args: argparse.Namespace, found: Any) -> tuple[Any, bool]:
    """The season that is asked for, and whether it differs from the league as its file has it."""
    from rewardlab.comparisons.own import of_task, only
    from rewardlab.comparisons.season import Season
    from rewardlab.runs.config import RunConfig

    given = shared.given(args, OWN)
    own, answering = "task" in given, shared.load_environment(args)
    if not own and (others := [*given, *(name for name in ("env", "tools", "corpus") if getattr(args, name))]):
        raise RewardlabError(f"--{others[0].replace('_', '-')} goes with problems of your own: give --task too")
    if own and args.worlds:
        raise RewardlabError("--worlds names the league's own, and with --task members meet on your problems alone: drop one")
    members = names_of(args.members, [member.name for member in found.members])
    worlds = names_of(args.worlds, [world.name for world in found.worlds])
    league = only(found, members, worlds, own)
    rates = shared.rates_of(args.rates)
    config = RunConfig(**{"device": args.device or "cpu" if not own else args.device or "auto", **given})
    if own:
        changes = {"reward": shared.load_reward(args), "steps": args.steps, "problems": args.eval_problems, **answering}
        league = of_task(league, config, rates=rates, **changes)
    elif args.reward or args.steps or rates or args.eval_problems:
        raise RewardlabError("rewards, steps, rates and problems of a league's own worlds are fixed; with --task they are yours")
    folder = args.out or Path("runs") / f"league-{args.league}{'-own' if own else ''}"
    pairs = args.seeds or league.pairs
    if pairs < 2 and any(world.sampled for world in league.worlds):
        raise RewardlabError("--seeds 1: one seed has no spread, and decides nothing: give 2 at least, 5 or more to decide much")
    # some of the worlds are recorded, since each is decided by itself; some of the members are not
    changed = own or len(league.members) < len(found.members) or pairs < found.pairs
    return Season(league, config, folder, pairs, args.jobs), changed


def names_of(text: str | None, known: Sequence[str] = ()) -> list[str]:
    """The names in a list with commas between them; one that is known may have commas of its own."""
    parts, found = [part.strip() for part in (text or "").split(",") if part.strip()], list[str]()
    while parts:
        ends = (end for end in range(len(parts), 1, -1) if ", ".join(parts[:end]) in known)
        end = next(ends, 1)
        found.append(", ".join(parts[:end]))
        parts = parts[end:]
    return found


def planned(args: argparse.Namespace, season: Any) -> dict[str, Any]:
    from rewardlab.checks.verdict import PAIRS
    from rewardlab.comparisons import league_records
    from rewardlab.comparisons.forecast import forecast

    league = season.league
    return {
        "plan": forecast(season, league_records.read(args.league)),
        "members": [member.name for member in league.members],
        "steps": {world.name: (world.steps or league.steps) if league.learns else 0 for world in league.worlds},
        "seeds": season.pairs,
        "few": season.pairs < PAIRS and any(world.sampled for world in league.worlds),
        "margin": league.outcome.margin,
    }


def played(args: argparse.Namespace, season: Any, changed: bool) -> dict[str, Any]:
    from rewardlab.comparisons import league_records, results
    from rewardlab.comparisons.league import league
    from rewardlab.comparisons.league_page import page
    from rewardlab.util.files import results_folder, write_json, write_text

    if lacks := "" if args.task else data_missing(season.league):
        record = None if changed else league_records.read(args.league)
        if record is None:
            raise RewardlabError(lacks)
        return {**record, "lacks": lacks}
    results_folder(season.folder, ("league.json", "league.html"), "worlds")
    from rewardlab.util.progress import console

    for told in plan_lines(planned(args, season)):
        console.print(told, highlight=False, soft_wrap=True)
    try:
        record = results.run_league(args.league, season)
    except KeyboardInterrupt as stop:
        # the command line shows notes
        stop.add_note("what has been run is kept: the same command resumes")
        raise
    if not changed:
        # of all members, since a record of some is not kept
        worlds = {world.name: season.terms(world) for world in league(args.league).worlds}
        record = league_records.completed(record, league_records.read(args.league), worlds)
    write_json(season.folder / "league.json", record)
    write_text(season.folder / "league.html", page(record, season.league.question))
    where = season.folder / "league.json" if changed else league_records.append(args.league, record)
    return {**record, "out": str(season.folder), "recorded": str(where)}


def data_missing(found: Any) -> str:
    """What is missing that a league's own worlds need, an optional package or recorded replies, in words; "" if nothing is."""
    from rewardlab import registry

    lacks: dict[str, str] = {}
    for world in found.worlds:
        try:
            # recorded replies are read when the first problem is asked for
            _ = registry.task(world.task).test[: int(not world.sampled)]
        except RewardlabError as e:
            lacks[world.name] = str(e)
    rest = ",".join(world.name for world in found.worlds if world.name not in lacks)
    return "; without it: --worlds ".join([*list(lacks.values())[:1], *([shlex.quote(rest)] if lacks and rest else [])])


def show(document: Mapping[str, Any]) -> None:
    if "leagues" in document:
        return show_leagues(document["leagues"])
    return show_plan(document) if "plan" in document else show_record(document)


def show_leagues(rows: list[Mapping[str, Any]]) -> None:
    from rewardlab.commands.tables import lines, table

    columns = ("league", "members", "run", "better than the baseline, in how many worlds")
    table(columns, ([row["league"], row["members"], row["run"] or "not yet", row["told"]] for row in rows))
    for row in rows:
        lines(f"{row['league']}: {row['question']}")


def show_plan(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import lines

    for told in plan_lines(document):
        lines(told, indent=0)


def plan_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What a league will take and tell, world by world."""
    members = document["members"]
    if any(world["missing"] for world in document["plan"]):
        yield f"{len(members)} members on {document['seeds']} seed{'s' * (document['seeds'] > 1)}: {', '.join(members)}"
        if document["few"]:
            yield "  warning: so few seeds decide only the largest differences; 5 or more (--seeds 5) decide more"
    for world in document["plan"]:
        kinds = ", ".join(f"{count} {what}" for what, count in world["of"].items() if count)
        steps = document["steps"][world["world"]]
        # where nothing is trained there are none
        updates = f" of {steps} update{'s' * (steps != 1)}" if steps else ""
        yield f"{world['world']}: {world['runs']} runs{updates} ({kinds}), {to_do(world)}"
        if world["sees"]:
            sees = ", ".join(f"{value:.3g} with {pairs} seeds" for pairs, value in world["sees"].items())
            yield f"  smallest difference detected with 80% power: {sees} ({document['margin']:g} would matter)"
        elif world["missing"]:
            yield (
                "  the smallest difference that it will find is told once the baseline has chosen its rate "
                f"({document['margin']:g} would matter)"
            )


def to_do(world: Mapping[str, Any]) -> str:
    if not world["missing"]:
        return "all done"
    if world["seconds"] is None:
        return f"{world['missing']} to do; how long they take is told after the first of them, and the same command resumes"
    return f"{world['missing']} to do, about {timedelta(seconds=world['seconds'])}"


def show_record(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import heading, lines, table
    from rewardlab.comparisons.telling import absences, remedies, unmet, unmet_of

    outcome, guard = document["outcome"], document["guard"]
    kept = [guard["says"]] if guard else []
    names = ("member", "level", "difference", "95% interval", "p, adjusted", *kept, "tokens", "rate", "stands")
    for world in document["worlds"]:
        heading(f"{world['name']}: {outcome['says']} ({outcome['better']} is better)")
        base = next(row for row in world["rows"] if row["member"] == document["baseline"])
        table(names, [line(row, base, document) for row in world["rows"]])
        for condition in unmet_of(world):
            lines(f"not met: {unmet(condition)}")
        if absent := absences(world):
            lines(absent)
        for remedy in remedies(world):
            lines(f"try: {remedy}")
    if document.get("unrun"):
        lines(f"not run yet: {', '.join(document['unrun'])}")
    if "lacks" in document:
        lines(f"This is the record of {document['when'][:10]}; it cannot be run again here: {document['lacks']}")
        return
    heading("Next")
    lines(f"open {shlex.quote(document['out'] + '/league.html')}")


def line(row: Mapping[str, Any], base: Mapping[str, Any], document: Mapping[str, Any]) -> list[Any]:
    from rewardlab.comparisons.levels import change, level_and_start, shown, span, times

    outcome, standing = document["outcome"], row["standing"]
    compared = (
        ("", "", "")
        if row is base
        else (
            change(standing["effect"], outcome),
            span(standing["low"], standing["high"], outcome),
            f"{standing['adjusted']:.2g}",
        )
    )
    kept = [shown(row["guard"]["mean"], document["guard"])] if document["guard"] else []
    cost = times(row["tokens"], base["tokens"])
    return [
        row["member"],
        level_and_start(row, outcome),
        *compared,
        *kept,
        cost,
        row["rate"] or "",
        row["failed"] or standing["word"],
    ]
