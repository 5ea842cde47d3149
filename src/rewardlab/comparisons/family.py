"""Families of comparable methods: the same rollouts and rewards as a base method, different learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardlab import registry
from rewardlab.comparisons.league import leagues
from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError, unknown

BASE = "grpo"
ALIKE = {"epochs": 1, "minibatches": 4}
"""Passes and optimiser steps for each batch, for all: an objective that clips does nothing in the first of them."""
BASELINES = "baselines"
SAME = ("rollout", "reward", "loop")


class Family(NamedTuple):
    """names: the base, then the others.  settings: what all have alike (ALIKE), and what makes one fit that would sample fewer
    replies by default (`ppo.n`).  left_out: the methods of the folder that do not fit, and why.
    """

    names: list[str]
    settings: dict[str, Any]
    left_out: dict[str, str]


def family(folder: str, base: str = BASE, without: Sequence[str] = ()) -> Family:
    """The methods of a folder, and the baselines, that learn from the rollouts and rewards of the base method.

    On one task with one number of problems, replies and updates they see the same kind of data, so that what is compared is the
    objective, or the credit, alone.  without: methods to leave out.
    Raises RewardlabError for a folder that holds no methods, or none that fit.
    """
    folders = {_folder(name) for name in registry.methods()}
    if folder not in folders:
        league = f"; a league has this name: rewardlab league {folder}" if folder in leagues() else ""
        raise RewardlabError(f"{unknown('folder of methods', folder, folders)}{league}")
    unwanted = {registry.spell(name) for name in without}
    if missing := sorted(unwanted - set(registry.methods())):
        raise unknown("method", missing[0], registry.methods())
    first = registry.build(base)
    found = Family([base], dict(ALIKE), {})
    for name in registry.methods():
        if name == base or _folder(name) not in (folder, BASELINES) or name in unwanted:
            continue
        why, settings = _fitting(name, first)
        if why and _folder(name) == folder:
            found.left_out[name] = why
        elif not why:
            found.names.append(name)
            found.settings.update({f"{name}.{key}": value for key, value in settings.items()})
    if all(_folder(name) != folder for name in found.names):
        raise RewardlabError(f"no method of {folder} samples and is paid as {base} is; name the methods to compare instead")
    return found


def _fitting(name: str, base: Recipe) -> tuple[str, dict[str, Any]]:
    """Why a method does not fit, "" if it does, and the settings with which it does."""
    why = misfit(registry.build(name), base)
    replies = base.rollout.settings.get("n") if why and base.rollout else None
    if replies is None or all(p.flag != "--n" for p in registry.parameters(name)):
        return why, {}
    if misfit(registry.build(name, {"n": replies}), base):
        return why, {}
    return "", {"n": replies}


def misfit(recipe: Recipe, base: Recipe) -> str:
    """Why a recipe is not of the base's family, in words; "" if it is."""
    if recipe.study is not None:
        return "it is a study"
    if recipe.objective is None:
        return "its policy does not learn"
    words = {"rollout": "it samples otherwise", "reward": "it is paid otherwise", "loop": "it has a loop of its own"}
    for slot in SAME:
        mine, other = getattr(recipe, slot), getattr(base, slot)
        if str(mine) != str(other):
            return f"{words[slot]}: {_short(mine)}"
    return ""


def _short(part: Any) -> str:
    text = " ".join(str(part).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _folder(name: str) -> str:
    return registry.file_of(name).parent.name
