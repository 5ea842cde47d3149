"""An environment for methods that sample single replies: then they sample episodes, and all else stays as it is.

    rewardlab train grpo --task questions.jsonl --tools mine.py:search,mine.py:lookup
    rewardlab train dapo --task questions.jsonl --corpus docs.jsonl --turns 6
    rewardlab train grpo --task rows.jsonl --env mine.py:game

Methods that play already take `env` themselves, and get it; so `--tools` and `--corpus` go wherever `--env` goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Environment, Recipe, Rollout
from rewardlab.errors import RewardlabError
from rewardlab.registry.names import PLAYED
from rewardlab.registry.parts import load_part, load_recipe
from rewardlab.settings.domain import POSITIVE
from rewardlab.settings.hyperparameters import hyperparameters

TURNS = 6
"""Replies of an episode, where neither the user nor the task says how many."""


def environment_in(settings: Mapping[str, Any], functions: Iterable[Callable]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the methods, and those of `played` for what none of them takes: `env` and `turns`.

    `tools`, and `corpus` where no method takes it, become an environment. Raises RewardlabError for two of them.
    """
    theirs = {name for function in functions for name in hyperparameters(function)}
    ours = {name for name in PLAYED if name in settings and name not in theirs}
    named = [name for name in ("env", "tools", "corpus") if name in settings and (name in ours or name == "env")]
    if len(named) > 1:
        raise RewardlabError(f"{' and '.join(named)} both say what answers the policy: give one of them")
    rest = {name: value for name, value in settings.items() if name not in ours}
    found = {name: settings[name] for name in ours}
    if named and (name := named[0]) in ("tools", "corpus"):
        made = _tools(found.pop(name)) if name == "tools" else _corpus(found.pop(name))
        (rest if "env" in theirs else found)["env"] = made
    if "turns" in found and "env" not in found:
        raise RewardlabError("turns says how long an episode is, and there is no environment: give --env, --tools or --corpus")
    return rest, found


def played(recipe: Recipe, env: Environment, turns: int = TURNS) -> Recipe:
    """The recipe with episodes in this environment in the place of single replies, in training and in its measure."""
    POSITIVE.check("turns", turns)
    if recipe.rollout is None:
        raise RewardlabError(f"{recipe.name or 'this recipe'} samples no replies that an environment could answer")
    from rewardlab.evals.episodes import episode_accuracy
    from rewardlab.evals.passk import accuracy
    from rewardlab.rollouts.interactive import interactive

    measure = recipe.measure
    inner = measure.settings.get("rollout") if measure is not None else None
    if measure is None or measure.function is accuracy.function:
        measure = episode_accuracy(rollout=interactive(env=env, n=1, turns=turns))
    elif inner is not None and samples_replies(inner):
        measure = measure.but(rollout=_in_episodes(inner, env, turns, recipe.name))
    return recipe.but(rollout=_in_episodes(recipe.rollout, env, turns, recipe.name), measure=measure)


def as_task(recipe: Recipe, env: Environment, turns: int) -> Recipe:
    """The recipe as it plays a task that brings this environment: in the place of independent replies, and of the search in a row's
    documents that methods take where nothing else is named. A recipe with another environment, or that does not play, stays.
    """
    from rewardlab.envs.search import search

    if recipe.rollout is None or env == search():
        return recipe if recipe.rollout is None or not samples_replies(recipe.rollout) else played(recipe, env, turns)
    if samples_replies(recipe.rollout):
        return played(recipe, env, turns)
    if recipe.rollout.innermost.settings.get("env") != search():
        return recipe
    # as data, since rollouts within measures and rewards play too
    return load_recipe(_replaced(recipe.to_json(), search(), env.to_json(), turns))


def _replaced(data: Any, old: Environment, new: Any, turns: int) -> Any:
    """Saved parts with an environment in the place of another, and as many turns wherever it is played."""
    if isinstance(data, list):
        return [_replaced(x, old, new, turns) for x in data]
    if not isinstance(data, dict):
        return data
    # loaded, since what is saved may hold settings at their defaults
    if isinstance(data.get("env"), dict) and load_part(data["env"]) == old:
        data = {**data, "env": new, **({"turns": turns} if "turns" in data else {})}
    return {key: _replaced(value, old, new, turns) for key, value in data.items()}


def samples_replies(rollout: Rollout) -> bool:
    """Whether it samples independent replies, which can become episodes."""
    from rewardlab.rollouts.independent import independent

    return rollout.innermost.function is independent.function


def _in_episodes(rollout: Rollout, env: Environment, turns: int, name: str | None) -> Any:
    from rewardlab.rollouts.independent import independent
    from rewardlab.rollouts.interactive import interactive

    if not samples_replies(rollout):
        raise RewardlabError(
            f"{name or 'this recipe'} samples by {rollout.innermost.name}, and only independent replies become episodes of an "
            "environment"
        )
    return rollout.replace_innermost(independent, interactive, env=env, turns=turns)


def _tools(names: Any) -> Environment:
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    from rewardlab.envs.functions import functions, tools_of

    # a saved recipe finds the file from anywhere
    placed = [f"{Path(where).expanduser().resolve()}:{function}" for where, _, function in (x.rpartition(":") for x in listed)]
    # what is missing or wrong is reported now, not after the model is loaded
    tools_of(tuple(placed))
    return functions(tools=tuple(placed))


def _corpus(corpus: str) -> Environment:
    from rewardlab.envs.search import tools

    return tools(None, corpus)
