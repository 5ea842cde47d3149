"""Rewards that are functions given in Python: who cannot have them, and the same one again for a run that is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.api.checking import parts_of
from rewardlab.core import Part, Recipe
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import reward_from
from rewardlab.rewards.user.external import function_of, key_of
from rewardlab.rewards.user.held import code_of, is_held, name_of, put


def in_python(*parts: Part | None) -> list[Part]:
    """The parts, at any depth, whose function this process alone has; each once."""
    found = (part for outer in parts if outer is not None for part in outer.walk() if part.name == "from_python")
    return list(dict.fromkeys(found))


def refuse_in_python(who: str, *parts: Part | None) -> None:
    """Raise RewardlabError where a part's function cannot be found by another process.  who: needs it, and why, in words."""
    if found := in_python(*parts):
        name, place, _ = key_of(found[0])
        raise RewardlabError(
            f"the reward {name} is a function that this process alone has ({place}), and {who}: put it at the top of a file of its "
            "own and import it from there, or give its text, reward='FILE.py:NAME'"
        )


def give_again(folder: Path, recipe: Recipe, reward: Any, changed: bool) -> None:
    """Let the functions in a saved recipe be those of `reward`, which a run that is resumed is given.

    changed: whether they may be others than before.  Raises RewardlabError where the run needs them and has none, where it needs
    none, and for other functions.
    """
    saved = in_python(*parts_of(recipe))
    if reward is None:
        if lacking := [key_of(part) for part in saved if not is_held(key_of(part))]:
            said = " and ".join(f"{name} ({place})" for name, place, _ in lacking)
            raise RewardlabError(
                f"{folder} began with a reward that was given as a function in Python, {said}: give it again, "
                f"rewardlab.resume({str(folder)!r}, reward=...)"
            )
        return
    if not saved:
        raise RewardlabError(f"{folder} finds its own reward, {recipe.reward}, by itself when it is resumed: leave reward= out")
    functions = [function_of(part) for part in _of_user(reward_from(reward))]
    keys = [key_of(part) for part in saved]
    if len(functions) != len(keys):
        names = [name for name, _, _ in keys]
        said = f"the function{'s' * (len(names) > 1)} {', '.join(names)} of Python"
        raise RewardlabError(f"{folder} is paid by {said}, and reward= has {len(functions)}")
    for key, function in zip(keys, functions, strict=True):
        if why := _differs(key, function):
            _refuse(folder, key, why, changed)
        put(key, function)


def _of_user(reward: Part) -> Iterator[Part]:
    """The user's functions in a reward, each once."""
    return (part for part in dict.fromkeys(reward.walk()) if function_of(part) is not None)


def _differs(key: tuple[str, str, str], function: Any) -> str:
    """How a function differs from the one that a run began with; empty where nothing tells them apart."""
    name, _, code = key
    if name_of(function) != name:
        return f"it is {name_of(function)} now"
    now = code_of(function)
    # another version of Python writes the same code down differently
    same_python = now.partition("-")[0] == code.partition("-")[0]
    return "its code, its defaults or what it closes over is other than then" if same_python and now != code else ""


def _refuse(folder: Path, key: tuple[str, str, str], why: str, changed: bool) -> None:
    if not changed:
        raise RewardlabError(
            f"{folder} is paid by {key[0]} ({key[1]}), and reward= is another function: {why}. Give the same one, or "
            "reward_changed=True to go on with the new one"
        )
