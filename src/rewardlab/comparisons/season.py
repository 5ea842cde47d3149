"""A league is run: rates are chosen on development seeds, members meet on others, and what they measured is decided together.

Runs that are known are read (`known_runs.py`): a league that was stopped resumes, one that has finished is read in seconds, and a
member that is added meets kept runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.checks.runs import Done, Job, kind_of
from rewardlab.checks.workers import Failed
from rewardlab.comparisons.along import POINTS
from rewardlab.comparisons.known_runs import Outcome, run_jobs
from rewardlab.comparisons.league import PAIRS, League, Member, World
from rewardlab.core import Recipe, Update
from rewardlab.engine.rates import RATES
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, PACKAGED
from rewardlab.runs.config import RunConfig

FIRST = 100
"""The first seed on which members meet; those below are development seeds."""
BEYOND = 2
"""Rates beyond an edge of the list that are tried where the best one is at the edge."""
KNOB_SEEDS = 3
UPDATE = tuple(Update.__dataclass_fields__)


@dataclass(frozen=True)
class Season:
    """A league under way.  config: what all runs share beside their world's settings.  pairs: seeds on which members meet.

    folder: for runs that can be resumed.  processes: runs at a time.
    """

    league: League
    config: RunConfig
    folder: Path
    pairs: int = PAIRS
    processes: int | None = None

    def recipe(self, member: Member, world: World, settings: Mapping[str, Any] | None = None) -> Recipe:
        """A member's recipe in a world: the league's settings where it has them, then the world's, then its own."""
        league, known = self.league, settings_of(member.stack)
        shared = {name: value for name, value in {**league.settings, **world.settings}.items() if name in known}
        recipe = registry.build(member.stack, {**shared, **member.settings, **member.small, **(settings or {})}).but(
            name=member.name
        )
        if member.reward is not None:
            recipe = recipe.scored_by(member.reward)
        elif world.reward is not None and recipe.reward is not None:
            by = member.by
            recipe = recipe.scored_by(registry.part("reward", "aggregate", world.reward, by=by) if by else world.reward)
        return recipe if league.measure is None else recipe.but(measure=league.measure)

    def job(
        self, member: Member, world: World, seed: int, settings: Mapping[str, Any] | None = None, *, measured: bool = True,
        tokens: int | None = None, along: bool = False,
    ) -> Job:  # fmt: skip
        """The run of a member in a world on a seed.  tokens: its budget, in place of steps.  settings: such as lr, or its knob.

        along: whether it is measured on the way, where the league compares members at equal amounts of what runs spend.
        """
        recipe, tokens = self.recipe(member, world, settings), tokens or world.tokens
        steps = None if tokens else world.steps or self.league.steps
        every = max(1, steps // POINTS) if steps and along and self.league.spends else 0
        config = self.config.but(
            task=world.task, model=model_of(world, seed), seed=seed, steps=steps, budget=tokens,
            eval_problems=(world.problems or self.league.problems) if measured else 0, eval_every=every,
            lora_rank=world.lora_rank or self.config.lora_rank, method=member.name,
        )  # fmt: skip
        words = [world.name, member.name, *(f"{name}={value}" for name, value in (settings or {}).items()), f"s{seed}"]
        where = self.folder / "unfinished" / "-".join(words).replace("/", "-")
        # a small policy's run takes seconds: its checkpoints would cost more than they save
        return Job(member.name, recipe.to_json(), config, str(where), keep=not is_small(config.model))

    def rates(self, member: Member, world: World) -> tuple[float, ...]:
        """The rates from which a member chooses: for a pretrained model, a third of its default, that, and three times as much."""
        if world.rates:
            return world.rates
        if is_small(world.model):
            return self.league.rates
        update = self.recipe(member, world).but(lr=None).update
        # any other rate is that of a model beside the policy, which scores
        kind = RATES[update.loss_kind if self.league.rate_of(member) == "lr" else "scorer"]
        middle = kind.adapters if world.lora_rank or self.config.lora_rank else kind.whole
        return tuple(float(f"{middle * times:.1g}") for times in (0.3, 1, 3))

    def terms(self, world: World) -> dict[str, Any]:
        """What a world is run by, as its record has it: by other terms its outcomes are not comparable."""
        formulas = {member.name: str(self.recipe(member, world)) for member in self.league.members_of(world)}
        return {"task": world.task, "steps": world.steps or self.league.steps, "budget": world.tokens, "formulas": formulas}

    def seeds(self, world: World) -> range:
        return range(FIRST, FIRST + (self.pairs if world.sampled else 1))


def model_of(world: World, seed: int) -> str | None:
    """The model of a run: seeds are divided among the warm starts of a small policy."""
    if world.model is not None or world.starts < 2:
        return world.model
    # the first of them is the usual start
    number = start_of(world, seed)
    return f"embedded#{number}" if number else None


def start_of(world: World, seed: int) -> int:
    return seed % FIRST % world.starts if world.model is None and world.starts > 1 else 0


def is_small(model: str | None) -> bool:
    return model is None or model.partition("#")[0].partition(":")[0] in set(NAMES) - set(PACKAGED)


def settings_of(stack: str) -> set[str]:
    """The settings that a method or stack takes, those of the update among them."""
    flags = (parameter.flag.removeprefix("--").replace("-", "_") for parameter in registry.parameters(stack))
    return {flag.rpartition(".")[2] for flag in flags} | set(UPDATE)


# ---- Rates --------------------------------------------------------------------------------------------------------------


Levels = dict[float, float | None]
"""By rate, the number by which rates are chosen; None where a run failed or lacks it."""


def choose_rates(season: Season, world: World) -> tuple[dict[str, Levels], dict[str, str]]:
    """The levels of every member that trains, at every rate of the list, and beyond an edge where the best is at it; and of those
    with a run that failed, why the first of these did.
    """
    members = [member for member in season.league.members_of(world) if trains(season, member, world)]
    levels: dict[str, Levels] = {member.name: {} for member in members}
    todo = {member.name: list(season.rates(member, world)) for member in members}
    failed: dict[str, str] = {}
    for _ in range(BEYOND + 1):
        work = [(member, rate) for member in members for rate in todo[member.name]]
        if not work:
            break
        for (member, rate), runs in zip(work, _developed(season, world, work), strict=True):
            levels[member.name][rate] = level_of(runs, season.league.chosen_by)
            if reasons := [one.reason for one in runs if isinstance(one, Failed)]:
                failed.setdefault(member.name, reasons[0])
        todo = {name: beyond(found) for name, found in levels.items()}
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


def level_of(runs: Sequence[Outcome | None], number: str) -> float | None:
    """The mean of a number over runs; None where one of them is missing, failed, or lacks it."""
    values = [one.numbers.get(number) if isinstance(one, Done) else None for one in runs]
    known = [value for value in values if value is not None]
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
    """Run all members in a world. Raises RewardlabError where the baseline fails.  dear: times the baseline's tokens above which a
    member is run again at equal tokens."""
    levels, why = choose_rates(season, world)
    rates = {name: chosen(found) for name, found in levels.items()}
    fit = [m for m in season.league.members_of(world) if m.name not in rates or rates[m.name] is not None]
    runs = _meet(season, world, fit, rates)
    runs |= {
        m.name: [Failed(f"no rate could be chosen: {why.get(m.name, f'its runs log no {season.league.chosen_by} to choose by')}")]
        for m in season.league.members_of(world)
        if m not in fit
    }
    if failed := next((one for one in runs[season.league.baseline] if isinstance(one, Failed)), None):
        raise RewardlabError(f"{world.name}: the baseline {season.league.baseline} fails: {failed.reason}")
    return Played(world, levels, runs, _at_equal_tokens(season, world, runs, rates, dear), _knobs(season, world, fit, rates))


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
    n = season.pairs
    return {m.name: outcomes[n * i : n * (i + 1)] for i, m in enumerate(costly)}


def _knobs(
    season: Season, world: World, members: Sequence[Member], rates: Mapping[str, float | None]
) -> dict[str, dict[float, list[Outcome]]]:
    seeds = list(season.seeds(world))[:KNOB_SEEDS]
    points = [(m, value) for m in members for value in m.values]
    jobs = [season.job(m, world, seed, {**_rate(season, rates, m), m.knob: value}) for m, value in points for seed in seeds]
    outcomes = run_jobs(f"{world.name}: settings", jobs, season.processes) if jobs else []
    found: dict[str, dict[float, list[Outcome]]] = {}
    for i, (member, value) in enumerate(points):
        found.setdefault(member.name, {})[value] = outcomes[len(seeds) * i : len(seeds) * (i + 1)]
    return found


def tokens(runs: Sequence[Outcome]) -> float | None:
    counts = [one.numbers["tokens"] for one in runs if isinstance(one, Done) and "tokens" in one.numbers]
    return float(np.mean(counts)) if counts else None
