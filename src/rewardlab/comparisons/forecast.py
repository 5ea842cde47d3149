"""What a league will take, and what it will be able to see, said before it is run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.runs import Done, Job
from rewardlab.checks.workers import crew_of
from rewardlab.comparisons.known_runs import known
from rewardlab.comparisons.league import Member, World
from rewardlab.comparisons.played import BEYOND, KNOB_SEEDS, Levels, beyond, chosen, rate_jobs, rate_levels, told_unfit, trains
from rewardlab.comparisons.season import Season
from rewardlab.comparisons.standings import detectable, independent, noise

PAIRS = (5, 8, 12, 20)
PLANNED = ("to choose rates", "to compare", "to vary a setting")
Record = Mapping[str, Any]


def forecast(season: Season, record: Record | None) -> list[dict[str, Any]]:
    """Of every world: its runs and what they are for, those that are not known yet, about how many seconds they take, and what can
    be told apart.

    record: of an earlier run of the league, from which the noise of a world is known; of a new one it is known once the baseline
    has chosen its rate, and told then.
    """
    return [of_world(season, world, noise_of(record, world)) for world in season.league.worlds]


def of_world(season: Season, world: World, noise: float | None) -> dict[str, Any]:
    plans = [planned(season, member, world) for member in season.league.members_of(world)]
    base = [known(job) for job in planned(season, season.league.member(season.league.baseline), world)["to compare"]]
    if all(base) and told_unfit(season, world, [one for one in base if one]):
        # the others are not run there, nor a setting of the baseline varied
        plans = []
    jobs = [job for plan in plans for some in plan.values() for job in some]
    done = {id(job): found for job in jobs if (found := known(job)) is not None}
    seconds = typical([one.seconds for one in done.values()])
    missing = [job for job in jobs if id(job) not in done]
    of_member = {
        name: typical([one.seconds for job in jobs if job.method == name and (one := done.get(id(job)))]) for name in names(jobs)
    }
    costs = [of_member[job.method] or seconds for job in missing]
    took = None if None in costs else sum(cost or 0 for cost in costs) / crew_of(season.processes).size
    meeting = len(season.seeds(world))
    rivals, pairs = len(season.league.rivals_of(world)), sorted({*PAIRS, meeting})
    if (few := starts_of(world)) > 1 and few < meeting:
        # more seeds from as many starts would be told apart no better, as far as the noise is theirs
        pairs = [meeting]
    sees = {n: detectable(noise, independent(n, few), rivals) for n in pairs} if noise else None
    return {
        "world": world.name, "runs": len(jobs), "of": {what: sum(len(plan[what]) for plan in plans) for what in PLANNED},
        "missing": len(missing), "seconds": None if took is None else round(took), "sees": sees,
    }  # fmt: skip


def starts_of(world: World) -> int:
    """Among how many initial policies seeds are divided; 1 for a model, of which there is one."""
    return world.starts if world.model is None else 1


def planned(season: Season, member: Member, world: World) -> dict[str, list[Job]]:
    """The runs that a member will have, by what they are for: at the rate that its known development runs choose, else at one in
    its place.
    """
    tuning, at = [], {}
    if trains(season, member, world):
        by_rate = tuning_jobs(season, member, world)
        tuning = [job for jobs in by_rate.values() for job in jobs]
        best = chosen(known_levels(season, world, by_rate))
        # whichever rate will be chosen, a run takes as long
        at = {season.league.rate_of(member): best or sorted(by_rate)[len(by_rate) // 2]}
    meeting = [season.job(member, world, seed, at, along=True) for seed in season.seeds(world)]
    some = season.seeds(world)[:KNOB_SEEDS]
    values = member.values if world.varied else ()
    settings = [season.job(member, world, seed, {**at, member.knob: value}) for value in values for seed in some]
    return dict(zip(PLANNED, (tuning, meeting, settings), strict=True))


def tuning_jobs(season: Season, member: Member, world: World) -> dict[float, list[Job]]:
    """By rate, the development runs of a member: those of the list, and of what is beyond it as far as runs are known."""
    rates = season.rates(member, world)
    if len(rates) == 1:
        # everyone's, which is not tried beforehand
        return {rates[0]: []}
    found = {rate: rate_jobs(season, world, member, rate) for rate in rates}
    for _ in range(BEYOND):
        ended = all(known(job) for jobs in found.values() for job in jobs)
        farther = beyond(known_levels(season, world, found)) if ended else []
        found |= {rate: rate_jobs(season, world, member, rate) for rate in farther}
    return found


def known_levels(season: Season, world: World, by_rate: Mapping[float, Sequence[Job]]) -> Levels:
    return rate_levels(season.league, world, {rate: [known(job) for job in jobs] for rate, jobs in by_rate.items()})


def names(jobs: Sequence[Job]) -> list[str]:
    return list(dict.fromkeys(job.method for job in jobs))


def typical(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def noise_of(record: Record | None, world: World) -> float | None:
    """`noise` in an earlier record of a world; None without one."""
    found = next((one for one in record["worlds"] if one["name"] == world.name), None) if record else None
    return noise(found["rows"], record["baseline"], found.get("starts", 1)) if found and record else None


def noise_at_rates(runs: Sequence[Sequence[Done]], number: str) -> float | None:
    """The same from the baseline's development runs, some at each rate: of the difference of two runs, pooled over rates."""
    values = [[one.numbers[number] for one in some if math.isfinite(one.numbers.get(number, math.nan))] for some in runs]
    variances = [float(np.var(some, ddof=1)) for some in values if len(some) > 1]
    return math.sqrt(2 * float(np.mean(variances))) if variances else None
