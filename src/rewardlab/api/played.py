"""Methods on tasks that are played in turns: whatever samples replies plays episodes in the task's environment instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewardlab import registry
from rewardlab.core import Environment, Recipe, Rollout, Task
from rewardlab.core.part import Expression, Part
from rewardlab.envs.external import from_file
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.passk import accuracy, coverage, pass_curve
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.interactive import interactive

KEPT = ("n", "temperature", "stop", "steps")
"""Settings of `independent` that `interactive` has too."""
OF_REPLIES = (accuracy.function, coverage.function, pass_curve.function)
"""Measures of independent replies."""


def played(recipe: Recipe, task: Task) -> Recipe:
    """The recipe for a task that is `played`; for any other the same one.

    Independent replies become episodes of the task's environment, and accuracy becomes that of episodes. A method that plays an
    environment already plays this one, with as many turns as it has itself, unless it is one in a file of the user's own.
    Raises RewardlabError for a method whose rollout plays none.
    """
    if not task.played:
        return recipe
    environment = registry.part("environment", str(task.environment))

    def change(part: Part) -> Part:
        if isinstance(part, Rollout) and part.function is independent.function:
            return _episodes(part, environment, task.turns)
        # one that wraps another is the method's own mechanism, and what it wraps has been replaced
        if isinstance(part, Environment) and part.function is not from_file.function and not part.of:
            return environment
        if getattr(part, "function", None) in OF_REPLIES:
            temperature = part.settings["temperature"]
            return episode_accuracy(rollout=interactive(env=environment, n=1, temperature=temperature, turns=task.turns))
        return part

    slots = {name: _mapped(part, change) for name, part in recipe.parts().items()}
    rollout = slots.get("rollout")
    if rollout is not None and not any(isinstance(part, Environment) for part in rollout.walk()):
        raise RewardlabError(
            f"{task.name} is played in turns, and the rollout {rollout} of {recipe.name or 'this recipe'} plays no environment: "
            "train by a method that samples episodes or independent replies (rewardlab train grpo ...)"
        )
    return recipe.but(**slots)


def _episodes(part: Rollout, environment: Environment, turns: int) -> Rollout:
    changed = {name: value for name, value in part.bound.items() if name not in KEPT}
    if lost := [name for name, value in changed.items() if value != independent().settings[name]]:
        raise RewardlabError(f"an episode is sampled without {' and '.join(lost)}: leave out {', '.join(lost)}")
    return interactive(env=environment, turns=turns, **{name: part.settings[name] for name in KEPT})


def _mapped(value: Any, change: Callable[[Part], Part]) -> Any:
    """A part, or what holds parts, with `change` applied to every part in it, inner ones first."""
    if isinstance(value, Expression):
        return type(value)(*(_mapped(x, change) for x in value._of))
    if isinstance(value, Part):
        inner = {name: _mapped(x, change) for name, x in value.bound.items()}
        new = {name: x for name, x in inner.items() if x is not value.bound[name]}
        return change(value.but(**new) if new else value)
    if isinstance(value, tuple):
        mapped = tuple(_mapped(x, change) for x in value)
        return mapped if any(a is not b for a, b in zip(mapped, value, strict=True)) else value
    return value
