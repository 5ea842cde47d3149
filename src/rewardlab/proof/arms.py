"""What a comparison compares: methods under their settings, or recipes made in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rewardlab import registry
from rewardlab.core import Recipe, Update
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.reward import Reward

from .runs import kind_of

UPDATE = {f.name for f in fields(Update)}
ONE_REPLY, SELECTED = "pass@1", "accuracy"
"""The share of right answers: of a trained policy that replies once, and of a method that selects an answer without training."""


@dataclass(frozen=True)
class Arm:
    """One side of a comparison.  name: distinct among the arms, in tables and names of folders."""

    name: str
    recipe: Recipe

    @property
    def trains(self) -> bool:
        return kind_of(self.recipe) == "train"

    @property
    def folder(self) -> str:
        return self.name.replace("/", "-")

    def measured_by(self, measure: str) -> str:
        """The name under which this arm measures a number: what `pass@1` is to a policy, `accuracy` is to a selection."""
        same = (ONE_REPLY, SELECTED)
        return same[not self.trains] if measure in same else measure


def arms_of(
    methods: Sequence[str | Recipe], settings: Mapping[str, Any] | None = None, reward: Reward | str | None = None
) -> list[Arm]:
    """The arms of a comparison.

    settings: `n` goes to every method that has it, `grpo.n` to grpo alone or in a stack, and counts where both are given; fields of
    Update (lr, problems ...) go to all.  reward: in place of the reward of every method that has one.
    Raises RewardlabError for a setting that no method has, for fewer than two methods, and for what cannot be compared.
    """
    if isinstance(methods, str):
        raise RewardlabError(f"methods are given in a list: compare([{methods!r}, ...])")
    settings, names = dict(settings or {}), [_name(m) for m in methods]
    if len(methods) < 2:
        raise RewardlabError("a comparison is of two methods or more; one is trained by: rewardlab train METHOD")
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise RewardlabError(f"{repeated} is named twice; give every method once, and recipes distinct names: recipe.but(name=...)")
    taken = [_settings_of(m, settings) for m in methods]
    _all_taken(methods, names, settings, taken)
    values = [{name: settings[key] for key, name in own.items()} for own in taken]
    recipes = [m.but(**own) if isinstance(m, Recipe) else registry.build(m, own) for m, own in zip(methods, values, strict=True)]
    if reward is not None:
        recipes = _rewarded(recipes, read_reward(reward) if isinstance(reward, str) else reward)
    arms = [Arm(name, recipe.but(name=name)) for name, recipe in zip(names, recipes, strict=True)]
    for arm in arms:
        _check(arm)
    return arms


def _name(method: str | Recipe) -> str:
    if not isinstance(method, Recipe):
        return "+".join(registry.spell(name) for name in method.split("+"))
    if not method.name:
        raise RewardlabError("a recipe that is compared needs a name: recipe.but(name=...)")
    return method.name


def _settings_of(method: str | Recipe, settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a method takes: their names as given, and as `registry.build` takes them."""
    name = _name(method)
    members = () if isinstance(method, Recipe) else name.split("+")
    plain, dotted = {}, {}
    for key in settings:
        owner, dot, setting = key.rpartition(".")
        owner = "+".join(registry.spell(part) for part in owner.split("+"))
        if not dot and setting in _known(method):
            plain[key] = setting
        elif dot and owner == name:
            dotted[key] = setting
        elif dot and owner in members:
            dotted[key] = f"{owner}.{setting}"
    # the last wins: what is said of one method goes before what is said of all
    return plain | dotted


def _known(method: str | Recipe) -> set[str]:
    """The settings that a method takes, without the names of methods before them."""
    if isinstance(method, Recipe):
        return UPDATE
    return {p.flag.removeprefix("--").replace("-", "_").rpartition(".")[2] for p in registry.parameters(method)}


def _all_taken(methods: Sequence[str | Recipe], names: list[str], settings: Mapping[str, Any], taken: list[dict[str, str]]) -> None:
    """Raise RewardlabError for a setting that would change nothing."""
    for key in settings:
        if any(key in own for own in taken):
            continue
        owner, dot, _ = key.rpartition(".")
        if dot:
            raise unknown("method of this comparison", owner, {*names, *(part for name in names for part in name.split("+"))})
        raise unknown(f"setting of {', '.join(names)}", key, set().union(*map(_known, methods)))


def _rewarded(recipes: list[Recipe], reward: Reward) -> list[Recipe]:
    if all(recipe.reward is None for recipe in recipes):
        names = " and ".join(recipe.name for recipe in recipes)
        raise RewardlabError(f"{names} learn from no reward, so that a reward of your own would change nothing")
    return [recipe if recipe.reward is None else recipe.but(reward=reward) for recipe in recipes]


def _check(arm: Arm) -> None:
    if arm.recipe.study is not None:
        raise RewardlabError(
            f"{arm.name}: a study trains no policy and has no metric to compare; run it with: rewardlab study {arm.name}"
        )
    # runs are processes of their own, in which the module __main__ is another
    if ":__main__:" in json.dumps(arm.recipe.to_json()):
        raise RewardlabError(
            f"{arm.name} has parts that are defined in a script or notebook, where other processes cannot import them; "
            "move them into a module (a file NAME.py beside it) and import them from there"
        )
