"""Settings that a method takes and does not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardlab import registry
from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError
from rewardlab.registry.names import PLAYED


def without_effect(name: str, settings: Mapping[str, Any], recipe: Recipe) -> list[str]:
    """Those of these settings without which a method or stack makes the same recipe, though they differ from its defaults.

    recipe: the one that it makes under these settings.
    """
    defaults = {parameter.flag.removeprefix("--").replace("-", "_"): parameter.default for parameter in registry.parameters(name)}
    given = [key for key, value in settings.items() if key not in PLAYED and defaults.get(key, value) != value]
    return [key for key in given if _same_without(name, settings, key, recipe)]


def _same_without(name: str, settings: Mapping[str, Any], key: str, recipe: Recipe) -> bool:
    try:
        return registry.build(name, {other: value for other, value in settings.items() if other != key}) == recipe
    except RewardlabError:
        # others need it
        return False
