"""A league under way: the recipe, the job and the rates of each member in each world (`played.py` runs them).

Runs that are known are read (`known_runs.py`): a league that was stopped resumes, one that has finished is read in seconds, and a
member that is added meets kept runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.checks.runs import Job
from rewardlab.checks.workers import Crew
from rewardlab.comparisons.along import POINTS
from rewardlab.comparisons.league import PAIRS, League, Member, World
from rewardlab.core import Recipe, Update
from rewardlab.engine.rates import RATES
from rewardlab.models.checkpoint import NAMES, PACKAGED
from rewardlab.registry.names import PLAYED
from rewardlab.runs.config import RunConfig

FIRST = 100
"""The first seed on which members meet; those below are development seeds."""
UPDATE = tuple(Update.__dataclass_fields__)


@dataclass(frozen=True)
class Season:
    """A league under way.  config: what all runs share beside their world's settings.  pairs: seeds on which members meet.

    folder: for runs that can be resumed.  processes: that run side by side, as of `crew_of`.
    """

    league: League
    config: RunConfig
    folder: Path
    pairs: int = PAIRS
    processes: int | Crew | None = None

    def recipe(self, member: Member, world: World, settings: Mapping[str, Any] | None = None) -> Recipe:
        """A member's recipe in a world: the league's settings where it has them, then the world's, then its own."""
        league, known = self.league, settings_of(member.stack)
        # an environment is for all members, also for those that sample single replies where there is none
        known |= set(PLAYED) if "env" in world.settings else set()
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
        pairs = min(self.pairs, world.pairs or self.pairs) if world.sampled else 1
        return range(FIRST, FIRST + pairs)

    def starts_of(self, world: World) -> list[int] | None:
        """By seed, the initial policy that a run begins from; None where all begin from one model."""
        shared = world.model is not None or world.starts < 2
        return None if shared else [start_of(world, seed) for seed in self.seeds(world)]


def model_of(world: World, seed: int) -> str | None:
    """The model of a run: seeds are divided among initial small policies."""
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
