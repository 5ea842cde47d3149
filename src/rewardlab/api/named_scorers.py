"""The reward models and process reward models that a recipe names."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Recipe
from rewardlab.rewards.model import PREFIX as TRAINED
from rewardlab.rewards.model import writes
from rewardlab.rewards.process import PREFIX


def require_scorers(recipe: Recipe) -> None:
    """Raise RewardlabError if a reward model that the recipe names is not there, or does not say how it scores."""
    from rewardlab.models.reward_model import reward_settings_of
    from rewardlab.prm.load import settings_of

    for name in dict.fromkeys([*scorers_in(recipe), *(learner.init for learner in recipe.also)]):
        if name.startswith(PREFIX):
            settings_of(name)
    for part, name in _naming(recipe, TRAINED):
        reward_settings_of(name, written=writes(part))


def scorers_in(recipe: Recipe, prefix: str = PREFIX) -> list[str]:
    """The process reward models that rewards of the recipe, or of its search, name by their checkpoints; or with another prefix,
    its reward models."""
    return list(dict.fromkeys(name for _, name in _naming(recipe, prefix)))


def scorers_of_all_kinds(recipe: Recipe) -> list[str]:
    """Process reward models and reward models alike, prm:NAME and model:NAME."""
    return [*scorers_in(recipe), *scorers_in(recipe, TRAINED)]


def _naming(recipe: Recipe, prefix: str) -> list[tuple[Any, str]]:
    """The parts of the recipe's reward and search that name a scorer by such a prefix, each with the name."""
    parts = [part for of in (recipe.reward, recipe.rollout) if of is not None for part in of.walk()]
    return [(part, x) for part in parts if isinstance(x := part.settings.get("model"), str) and x.startswith(prefix)]
