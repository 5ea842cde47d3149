"""Whether a run has steps left once the first stage of its method is over."""

from __future__ import annotations

from collections.abc import Iterator

from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig


def check_stages(recipe: Recipe, config: RunConfig, asked: Recipe | str = "") -> None:
    """Raise RewardlabError where all steps of a run would be a first stage, as of SFT, so that nothing else is ever trained.

    asked: what was asked for. A recipe, made in Python or by a check, may be cut short on purpose: `tell_idle` tells of it.
    """
    for told in first_stage_alone(recipe, config) if isinstance(asked, str) else ():
        raise RewardlabError(told)


def first_stage_alone(recipe: Recipe, config: RunConfig) -> Iterator[str]:
    """What is to be told of the loops whose first stage (the option `first` of their part) takes all steps of the run.

    A run that ends with a budget of tokens may take any number of steps, and a stage that is a share of the run leaves some.
    """
    steps = int(config.settled().steps)
    if config.budget or recipe.loop is None:
        return
    for part in recipe.loop.walk():
        lengths = {name: part.settings[name] or 0 for name in getattr(part.options, "first", ())}
        if lengths and sum(lengths.values()) >= steps:
            named = " and ".join(f"{name}={n}" for name, n in lengths.items())
            yield (
                f"{recipe.name or 'the recipe'}: the first stage ({named} of the loop {part.name}) takes all {steps} steps of "
                f"this run, so that what follows it is never trained: take --steps {sum(lengths.values()) + 1} or more, or a "
                "shorter stage"
            )
