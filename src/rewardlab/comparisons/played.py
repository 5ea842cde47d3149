"""The worlds of a league are played: rates are chosen on development seeds, then members meet on others.

The baseline goes first. Where it shows that a world can decide nothing, the others are not run there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewardlab.checks.runs import Done, Job, kind_of
from rewardlab.checks.workers import Failed
from rewardlab.comparisons.known_runs import Outcome, run_jobs
from rewardlab.comparisons.league import Guard, League, Member, World
from rewardlab.comparisons.season import Season
from rewardlab.comparisons.standings import fitness
from rewardlab.comparisons.telling import unmet
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

BEYOND = 2
"""Rates beyond an edge of the list that are tried where the best one is at the edge."""
KNOB_SEEDS = 3
ALIKE = 0.2
"""Of what would matter in the outcome: rates that differ by less are told apart by what is guarded, as two seeds tell no more."""

# ---- Rates --------------------------------------------------------------------------------------------------------------


Levels = dict[float, float | None]
"""By rate, the number by which rates are chosen; None where a run failed or lacks it."""
UNTRIED = math.nan
"""The level of a single rate."""


def choose_rates(season: Season, world: World, members: Sequence[Member]) -> tuple[dict[str, Levels], dict[str, str]]:
    """The levels of each of these members that trains, at every rate of the list, and beyond an edge where the best is at it.

    A single rate is not tried: there is nothing to choose. And of those with a run that failed, why the first of these did.
    """
    rates = {member.name: season.rates(member, world) for member in members if trains(season, member, world)}
    levels: dict[str, Levels] = {name: {some[0]: UNTRIED} for name, some in rates.items() if len(some) == 1}
    todo = {name: list(some) for name, some in rates.items() if len(some) > 1}
    found: dict[str, dict[float, list[Outcome]]] = {name: {} for name in todo}
    failed: dict[str, str] = {}
    for _ in range(BEYOND + 1):
        work = [(season.league.member(name), rate) for name, some in todo.items() for rate in some]
        if not work:
            break
        for (member, rate), runs in zip(work, _developed(season, world, work), strict=True):
            found[member.name][rate] = runs
            if reasons := [one.reason for one in runs if isinstance(one, Failed)]:
                failed.setdefault(member.name, reasons[0])
        levels |= {name: rate_levels(season.league, world, by_rate) for name, by_rate in found.items()}
        todo = {name: beyond(levels[name]) for name in found}
    return levels, failed


def _developed(season: Season, world: World, work: Sequence[tuple[Member, float]]) -> Iterator[list[Outcome]]:
    """The development runs of each of these members at its rate."""
    jobs = [job for member, rate in work for job in rate_jobs(season, world, member, rate)]
    outcomes = run_jobs(f"{world.name}: choosing rates", jobs, season.processes)
    for i in range(0, len(outcomes), season.league.rate_seeds):
        yield outcomes[i : i + season.league.rate_seeds]


def rate_jobs(season: Season, world: World, member: Member, rate: float) -> list[Job]:
    """The runs of a member at a rate on the development seeds."""
    # what training logs need not be measured at the end
    measured = not season.league.chosen_by.startswith(("auc.", "train."))
    at = {season.league.rate_of(member): rate}
    return [season.job(member, world, seed, at, measured=measured) for seed in range(season.league.rate_seeds)]


def rate_levels(league: League, world: World, by_rate: Mapping[float, Sequence[Outcome | None]]) -> Levels:
    """By rate, the number by which rates are chosen; None where it is not known, or the rate is out of the question.

    Where the baseline need not learn, it is what is guarded; a rate is out of the question at which that is lower than at another
    by more than the guard allows, or whose outcome is not about the best of the rest.
    """
    guard = league.guard
    if world.learns or guard is None:
        return {rate: level_of(runs, league.chosen_by) for rate, runs in by_rate.items()}
    kept = _unspoilt(guard, {rate: level_of(runs, league.chosen_by) for rate, runs in by_rate.items()})
    levels = {rate: level_of(by_rate[rate], league.outcome.number) for rate in kept}
    gains = {rate: league.outcome.gain(level) for rate, level in levels.items() if level is not None}
    # where none has the outcome, as length where no reply is right, what is guarded is all that is known
    best = max(gains.values(), default=0.0)
    alike = {rate for rate in gains if best - gains[rate] <= ALIKE * league.outcome.margin} if gains else set(kept)
    return {rate: kept[rate] if rate in alike else None for rate in by_rate}


def _unspoilt(guard: Guard, levels: Levels) -> dict[float, float]:
    """What is guarded, by rate, where it is not much lower than at the best of them."""
    known = {rate: level for rate, level in levels.items() if level is not None}
    best = max(known.values(), default=0.0)
    return {rate: level for rate, level in known.items() if level - best >= guard.at_least}


def level_of(runs: Sequence[Outcome | None], number: str) -> float | None:
    """The mean of a number over runs; None where one of them is missing, failed, or has no such number, or none that is defined."""
    values = [one.numbers.get(number) if isinstance(one, Done) else None for one in runs]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def beyond(levels: Levels) -> list[float]:
    """The next rate to try where the best one is the lowest or the highest so far: a step of the list farther out."""
    best, rates = chosen(levels), sorted(levels)
    # where all do alike, as where nobody is ever right, there is no way to go
    if best is None or len(rates) < 2 or len(set(levels.values())) == 1:
        return []
    if best == rates[0]:
        return [float(f"{rates[0] * rates[0] / rates[1]:.1g}")]
    return [float(f"{rates[-1] * rates[-1] / rates[-2]:.1g}")] if best == rates[-1] else []


def chosen(levels: Levels) -> float | None:
    """The rate with the highest level; of equal ones the lowest."""
    defined = {rate: level for rate, level in levels.items() if level is not None}
    return min(defined, key=lambda rate: (-defined[rate], rate)) if defined else None


def trains(season: Season, member: Member, world: World) -> bool:
    return kind_of(season.recipe(member, world)) == "train"


# ---- A world ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """What was run in a world.  runs: by member, its outcomes on the season's seeds.  levels: by member and rate.

    equal: of members that cost more, the same at the baseline's tokens.  knobs: by member and value, on a few seeds.
    """

    world: World
    levels: Mapping[str, Levels]
    runs: Mapping[str, Sequence[Outcome]]
    equal: Mapping[str, Sequence[Outcome]]
    knobs: Mapping[str, Mapping[float, Sequence[Outcome]]]

    def rate(self, member: str) -> float | None:
        return chosen(self.levels[member]) if member in self.levels else None


def play(season: Season, world: World, dear: float) -> Played:
    """Run all members in a world; the baseline alone where it shows that nothing can be decided there.

    dear: times the baseline's tokens above which a member is run again at equal tokens.
    Raises RewardlabError where the baseline fails.
    """
    base = season.league.member(season.league.baseline)
    levels, _, runs = _run_members(season, world, [base])
    if failed := next((one for one in runs[base.name] if isinstance(one, Failed)), None):
        raise RewardlabError(f"{world.name}: the baseline {base.name} fails: {failed.reason}")
    if unfit := told_unfit(season, world, runs[base.name]):
        console.print(unfit, highlight=False, soft_wrap=True)
        return Played(world, levels, runs, {}, {})
    more, rates, others = _run_members(season, world, season.league.rivals_of(world))
    levels, runs = levels | more, runs | others
    rates |= {base.name: chosen(levels[base.name])} if base.name in levels else {}
    fit = [m for m in season.league.members_of(world) if m.name not in rates or rates[m.name] is not None]
    return Played(world, levels, runs, _at_equal_tokens(season, world, runs, rates, dear), _knobs(season, world, fit, rates))


def told_unfit(season: Season, world: World, runs: Sequence[Outcome]) -> str:
    """Why a world can decide nothing, by the runs of its baseline; "" where it can."""
    if not world.sampled:
        return ""
    starts = season.starts_of(world) or range(len(runs))
    ended = [(one.numbers, start) for one, start in zip(runs, starts, strict=True) if isinstance(one, Done)]
    learns, must = season.league.learns, world.learns
    conditions = fitness([n for n, _ in ended], learns, must_learn=must, starts=[start for _, start in ended]) if ended else []
    failed = [unmet(condition) for condition in conditions if not condition["ok"]]
    if not failed:
        return ""
    return f"{world.name}: not met: {'; '.join(failed)}. Nothing can be decided there, so the others are not run."


def _run_members(
    season: Season, world: World, members: Sequence[Member]
) -> tuple[dict[str, Levels], dict[str, float | None], dict[str, Sequence[Outcome]]]:
    """By member: its levels by rate, the rate chosen, and its runs at it on the season's seeds."""
    levels, why = choose_rates(season, world, members)
    rates = {name: chosen(found) for name, found in levels.items()}
    fit = [m for m in members if m.name not in rates or rates[m.name] is not None]
    runs: dict[str, Sequence[Outcome]] = dict(_meet(season, world, fit, rates))
    for m in members:
        if m not in fit:
            reason = why.get(m.name, f"its runs log no {season.league.chosen_by} to choose by")
            runs[m.name] = [Failed(f"no rate could be chosen: {reason}")]
    return levels, rates, runs


def _meet(season: Season, world: World, members: Sequence[Member], rates: Mapping[str, float | None]) -> dict[str, list[Outcome]]:
    seeds = season.seeds(world)
    # seed by seed, so that a league that is stopped early has whole pairs
    jobs = [season.job(member, world, seed, _rate(season, rates, member), along=True) for seed in seeds for member in members]
    outcomes = run_jobs(f"{world.name}: members meet", jobs, season.processes)
    return {member.name: [outcomes[i * len(members) + j] for i in range(len(seeds))] for j, member in enumerate(members)}


def _rate(season: Season, rates: Mapping[str, float | None], member: Member) -> dict[str, float]:
    rate = rates.get(member.name)
    return {} if rate is None else {season.league.rate_of(member): rate}


def _at_equal_tokens(
    season: Season, world: World, runs: Mapping[str, Sequence[Outcome]], rates: Mapping[str, float | None], dear: float
) -> dict[str, list[Outcome]]:
    if world.tokens:
        # all spent as much already
        return {}
    base = [int(one.numbers["tokens"]) for one in runs[season.league.baseline] if isinstance(one, Done)]
    costly = [
        m
        for m in season.league.rivals_of(world)
        if m.name in rates and (cost := tokens(runs[m.name])) and cost > dear * np.mean(base)
    ]
    jobs = [
        season.job(m, world, seed, _rate(season, rates, m), tokens=base[i])
        for m in costly
        for i, seed in enumerate(season.seeds(world))
    ]
    outcomes = run_jobs(f"{world.name}: at equal tokens", jobs, season.processes) if jobs else []
    n = len(season.seeds(world))
    return {m.name: outcomes[n * i : n * (i + 1)] for i, m in enumerate(costly)}


def _knobs(
    season: Season, world: World, members: Sequence[Member], rates: Mapping[str, float | None]
) -> dict[str, dict[float, list[Outcome]]]:
    seeds = list(season.seeds(world))[:KNOB_SEEDS]
    points = [(m, value) for m in members for value in m.values if world.varied]
    jobs = [season.job(m, world, seed, {**_rate(season, rates, m), m.knob: value}) for m, value in points for seed in seeds]
    outcomes = run_jobs(f"{world.name}: settings", jobs, season.processes) if jobs else []
    found: dict[str, dict[float, list[Outcome]]] = {}
    for i, (member, value) in enumerate(points):
        found.setdefault(member.name, {})[value] = outcomes[len(seeds) * i : len(seeds) * (i + 1)]
    return found


def tokens(runs: Sequence[Outcome]) -> float | None:
    counts = [one.numbers["tokens"] for one in runs if isinstance(one, Done) and "tokens" in one.numbers]
    return float(np.mean(counts)) if counts else None
