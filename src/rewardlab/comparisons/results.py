"""What a league found, as its record holds it: in each world every member's levels, where it stands, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rewardlab import api
from rewardlab.checks.runs import Done
from rewardlab.checks.workers import crew_of, shared_processes
from rewardlab.comparisons.along import compared, mean_path
from rewardlab.comparisons.league import League, World
from rewardlab.comparisons.played import Played, play, tokens
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.comparisons.standings import Standing, by_start, fitness, standings, told_apart
from rewardlab.comparisons.words import BASELINE, DEAR, FAILED, UNFIT
from rewardlab.util.intervals import interval

Record = dict[str, Any]
SEEDS, PROBLEMS = "seeds", "problems"
"""What members are paired by in a world."""
BESIDE = ("length", "kl", "entropy", "signal")
"""Shown beside what is compared: as measured at the end, else as training logged it late."""


def run_league(name: str, season: Season) -> Record:
    """Run all worlds, one after another, and return what was found."""
    league, crew = season.league, crew_of(season.processes)
    # one set of processes for all stages: each loads torch and the package once
    with shared_processes(crew):
        worlds = [world_record(season, play(season, world, DEAR)) for world in league.worlds]
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "name": name, "baseline": league.baseline,
        "members": [member.name for member in league.members],
        "outcome": asdict(league.outcome),
        "guard": guard_record(league), "costs": dict(league.costs), "spends": list(league.spends) if league.spends else None,
        "steps": league.steps, "problems": league.problems, "rate_seeds": league.rate_seeds,
        "chosen_by": league.chosen_by, "seeds": list(range(FIRST, FIRST + season.pairs)), "settings": dict(league.settings),
        "worlds": worlds, "versions": api.versions(), "machine": {"cores": crew.size * crew.threads},
    }  # fmt: skip


def guard_record(league: League) -> Record | None:
    guard = league.guard
    if guard is None:
        return None
    bounds = {"at_least": guard.at_least, "at_most": guard.at_most}
    words = {"number": guard.number, "says": guard.says or guard.number, "scale": guard.scale, "unit": guard.unit}
    return words | {k: v for k, v in bounds.items() if math.isfinite(v)}


def world_record(season: Season, played: Played) -> Record:
    league, world = season.league, played.world
    done = {name: numbers_of(played, name) for name, runs in played.runs.items() if all(isinstance(one, Done) for one in runs)}
    whole = {name: paired(world, runs) for name, runs in done.items()}
    starts = season.starts_of(world)
    found = standings(whole, league.baseline, league.outcome, league.guard, starts)
    conditions = fitness(whole[league.baseline], league.learns, must_learn=world.learns, starts=starts)
    fit = all(condition["ok"] for condition in conditions)
    rows = [
        row(season, played, member.name, found.get(member.name, Standing(FAILED)))
        for member in league.members_of(world)
        if member.name in played.runs
    ]
    equal = compared(done, league.baseline, league.spends[0], league.outcome, starts) if league.spends else {}
    for one in rows:
        one["at_equal"] = equal.get(one["member"])
    if not fit:
        for one in [one["standing"] for one in rows] + [one["at_equal"] for one in rows if one["at_equal"]]:
            one["word"] = one["word"] if one["word"] in (BASELINE, FAILED) else UNFIT
    return {
        "name": world.name, "task": world.task, "says": world.says, "new": world.new, "model": world.model or "embedded",
        "starts": len(set(starts)) if starts else 1, "steps": world.steps or league.steps, "budget": world.tokens,
        "fit": fit, "conditions": conditions, "paired": SEEDS if world.sampled else PROBLEMS, "pairs": len(whole[league.baseline]),
        "absent": dict(world.absent), "told_apart": told_apart(whole, league.outcome),
        "rows": sorted(rows, key=lambda one: place(one["standing"])),
        "seconds": round(sum(one.seconds for runs in played.runs.values() for one in runs if isinstance(one, Done))),
    }  # fmt: skip


def place(standing: Mapping[str, Any]) -> float:
    """The key by which members are listed: the best first, those without a number last; the baseline at 0."""
    if standing["word"] == BASELINE:
        return 0.0
    return math.inf if standing["effect"] is None else -standing["effect"]


def row(season: Season, played: Played, name: str, standing: Standing) -> Record:
    """A member in a world."""
    league, world, runs = season.league, played.world, played.runs[name]
    done = [one for one in runs if isinstance(one, Done)]
    failed = next((one.reason for one in runs if not isinstance(one, Done)), None)
    before = f"before.{league.outcome.number}"
    return {
        "member": name, "method": league.member(name).stack, "rate": played.rate(name),
        "formula": str(season.recipe(league.member(name), world)),
        "rates": [[rate, finite(level)] for rate, level in sorted(played.levels.get(name, {}).items())], "failed": failed,
        "standing": standing.to_json(), **of_world(world, done, league.outcome.number), "start": level(done, before)["mean"],
        "guard": of_world(world, done, league.guard.number) if league.guard else None,
        "tokens": tokens(runs), "updates": average(done, "updates"), "seconds": [one.seconds for one in done],
        "beside": {key: beside(done, key) for key in (*BESIDE, *league.costs)}, "pass_at": pass_at(done),
        "curves": curves(done), "path": mean_path(done, league.spends[0], league.outcome.number) if league.spends else [],
        "equal_tokens": at_equal(season, played, name), "knob": knob(season, played, name),
    }  # fmt: skip


def finite(value: float | None) -> float | None:
    """As JSON holds it: None where it is not defined."""
    return value if value is not None and math.isfinite(value) else None


def paired(world: World, done: Sequence[Done]) -> list[Mapping[str, float]]:
    """What members are compared by, pair by pair: the numbers of each seed; of each problem, where seeds change nothing."""
    if world.sampled:
        return [one.numbers for one in done]
    return [dict(zip(one.each, values, strict=True)) for one in done for values in zip(*one.each.values(), strict=True)]


def of_world(world: World, done: Sequence[Done], name: str) -> Record:
    """The level of a number, with the interval over what is paired. Of problems the single values are not kept: they are read again
    from the recorded replies in seconds."""
    if world.sampled:
        return level(done, name)
    found = level([Done(dict(one), [], 0.0) for one in paired(world, done)], name)
    return {**found, "values": []}


def level(done: Sequence[Done], name: str) -> Record:
    """Of a number: seed by seed, the mean, and its 95% interval, which stays within 0 .. 1 for shares."""
    values = [one.numbers.get(name) for one in done]
    defined = np.array([value for value in values if value is not None and math.isfinite(value)], float)
    if not len(defined):
        return {"values": [None] * len(values), "mean": None, "ci95": None}
    mean, low, high = (float(x) for x in interval(defined))
    if ((defined >= 0) & (defined <= 1)).all():
        low, high = max(low, 0.0), min(high, 1.0)
    plain = [None if value is None or not math.isfinite(value) else round(value, 5) for value in values]
    return {"values": plain, "mean": mean, "ci95": [low, high] if len(defined) > 1 else None}


def average(done: Sequence[Done], name: str) -> float | None:
    known = [value for one in done if (value := one.numbers.get(name)) is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else None


def beside(done: Sequence[Done], key: str) -> float | None:
    measured = average(done, key)
    return average(done, f"train.{key}") if measured is None else measured


def pass_at(done: Sequence[Done]) -> dict[str, float]:
    names = dict.fromkeys(name for one in done for name in one.numbers if name.startswith("pass@"))
    return {name: found for name in names if (found := average(done, name)) is not None}


def curves(done: Sequence[Done]) -> dict[str, list[float]]:
    """The mean over seeds of what training logged, over equal stretches of the runs."""
    found = {}
    for name in dict.fromkeys(name for one in done for name in one.training):
        lines = [one.training[name] for one in done if name in one.training]
        points = min(map(len, lines))
        found[name] = [round(float(np.mean([line[i] for line in lines])), 4) for i in range(points)]
    return found


def at_equal(season: Season, played: Played, name: str) -> Record | None:
    """The level at the tokens that the baseline used, and its difference to it, for a member that costs more."""
    done = [one for one in played.equal.get(name, ()) if isinstance(one, Done)]
    if len(done) < len(season.seeds(played.world)):
        return None
    outcome = season.league.outcome
    base = level(numbers_of(played, season.league.baseline), outcome.number)["values"]
    mine = level(done, outcome.number)
    each = [math.nan if a is None or b is None else outcome.gain(a - b) for a, b in zip(mine["values"], base, strict=True)]
    pairs = by_start(each, season.starts_of(played.world))
    if len(pairs) < 2:
        return None
    effect, low, high = (float(x) for x in interval(pairs))
    return {
        **mine,
        "effect": effect,
        "low": low,
        "high": high,
        "tokens": average(done, "tokens"),
        "updates": average(done, "updates"),
    }


def numbers_of(played: Played, name: str) -> list[Done]:
    return [one for one in played.runs[name] if isinstance(one, Done)]


def knob(season: Season, played: Played, name: str) -> list[Record]:
    """The points of a member's setting: its value, the outcome, and what is guarded."""
    league, member = season.league, season.league.member(name)
    found = []
    for value, runs in played.knobs.get(name, {}).items():
        done = [one for one in runs if isinstance(one, Done)]
        guard = average(done, league.guard.number) if league.guard else None
        found.append({"knob": member.knob, "at": value, "mean": average(done, league.outcome.number), "guard": guard})
    return found
