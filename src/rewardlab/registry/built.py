"""Recipes of methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewardlab.errors import RewardlabError

from .find import stacked

if TYPE_CHECKING:
    from rewardlab.core import Recipe


def build(name: str, settings: Mapping[str, Any] | None = None, **by_name: Any) -> Recipe:
    """The recipe of a method, or of several stacked (`grpo+hapo`), under these settings.

    A setting goes to the method that takes it; `hapo.weight` names the method; fields of `Update` (lr, problems, ...)
    go to the recipe. A text for a setting that is a reward or an environment names one, as on the command line ("mine.py:judge",
    "correct").
    Raises RewardlabError for an unknown name, and for a setting that two methods take.
    """
    from .settings import compose

    if not isinstance(name, str):
        raise RewardlabError(f'build takes the name of a method, build("grpo"), not {name!r}')
    if by_name:
        raise RewardlabError(f"settings are given in a dict: build({name!r}, {by_name!r})")
    if settings is not None and not isinstance(settings, Mapping):
        raise RewardlabError(f'settings must be a dict, such as {{"n": 8}}, not {settings!r}')
    methods, given = stacked(name), settings or {}
    if any(isinstance(value, str) for value in given.values()):
        from .formula import with_parts

        given = with_parts([function for _, function in methods], given)
    return compose(methods, given)
