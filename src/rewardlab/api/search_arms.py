"""The methods of a search, under their settings and with their scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewardlab import registry
from rewardlab.api.selecting import check_selects
from rewardlab.core import Learner, Recipe
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_reward, reward_from
from rewardlab.registry.names import PLAYED
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.settings.old_names import unknown_setting

SCALES = ("n", "width", "trees", "iterations")
"""The setting of a rollout by which a search spends more: the first of these that it has."""


@dataclass(frozen=True)
class Arm:
    """A method as it searches.  scale: the setting that a budget decides.  setting: what it decided."""

    name: str
    recipe: Recipe
    scale: str
    setting: dict[str, int] = field(default_factory=dict)

    def at(self, value: int) -> Arm:
        rollout = self.recipe.required("rollout").but_innermost(**{self.scale: value})
        return replace(self, recipe=self.recipe.but(rollout=rollout), setting={self.scale: value})

    @property
    def described(self) -> dict[str, Any]:
        """All that its answers depend on, as plain data."""
        return self.recipe.to_json()


def arms(
    methods: Sequence[str | Recipe] | str | Recipe, settings: Mapping[str, Any], scorer: Reward | str | None, scaled: bool
) -> list[Arm]:
    """The methods, each with the settings that it has.  scaled: a budget decides how much each spends.

    Raises RewardlabError for a method that selects no answer, for one that is named twice, for a setting that none of them has or
    that the budget decides, and for a scorer that none of them reads.
    """
    listed = [methods] if isinstance(methods, str | Recipe) else list(methods)
    if not listed:
        raise RewardlabError("which methods? such as beam_search, dvts, best_of_n (rewardlab list --folder search)")
    for method in listed:
        if isinstance(method, str):
            check_selects(method)
    own = [_own(method, settings) for method in listed]
    if lost := [key for key in settings if not any(key in taken for taken in own)]:
        known, kind = {key for m in listed for key in _known(m)}, f"setting of {', '.join(map(_name, listed))}"
        # each search spends more by a setting of its own
        if lost[0] in SCALES and (sizes := [name for name in SCALES if name in known]):
            raise RewardlabError(f"unknown {kind} {lost[0]!r}; did you mean {' or '.join(sizes)}?")
        raise unknown_setting(kind, lost[0], known)
    bound = [{plain: settings[key] for key, plain in taken.items()} for taken in own]
    found = [_arm(method, values, scorer, scaled) for method, values in zip(listed, bound, strict=True)]
    names = [arm.name for arm in found]
    if scorer is not None and all(arm.recipe.reward is None for arm in found):
        # it would be named beside results that do not depend on it, though there may be no such scorer
        raise RewardlabError(f"{' and '.join(names)} read{'s' * (len(names) == 1)} no scores: leave out the scorer, {scorer}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RewardlabError(f"{twice} is named twice: give each method once, recipes under names of their own (.but(name=...))")
    return found


def scorer_of(scorer: Any) -> Reward | str | None:
    """The scorer; of a plain function, and of several rewards, the reward that they make."""
    return scorer if scorer is None or isinstance(scorer, str) else reward_from(scorer)


def scored(recipe: Recipe, scorer: Reward | str | None) -> Recipe:
    """The recipe with another scorer (see `api.search`); as it is, if it reads no scores."""
    if recipe.reward is None or scorer is None or scorer == "likelihood":
        # without a reward model the likelihood is what all of them score by, in the form that their selection needs
        return recipe
    if isinstance(scorer, Reward):
        return recipe.scored_by(scorer)
    if scorer == "verifier":
        return recipe.scored_by(correct())
    if scorer.startswith("prm:"):
        # every=0: it is loaded with the run and never updated
        prm = Learner("prm", scorer, Recipe(), every=0)
        return recipe.scored_by(registry.part("reward", "prm_score", model="prm")).but(also=(*recipe.also, prm))
    return recipe.scored_by(read_reward(scorer))


def _arm(method: str | Recipe, settings: Mapping[str, Any], scorer: Reward | str | None, scaled: bool) -> Arm:
    made = registry.build(method, settings) if isinstance(method, str) else registry.with_settings(method.validate(), settings)
    recipe = scored(made, scorer)
    name = _name(method)
    if not name:
        raise RewardlabError("a recipe that searches needs a name: recipe.but(name=...)")
    if recipe.select is None or recipe.rollout is None:
        raise RewardlabError(f"{name} selects no answer; beam_search, dvts, best_of_n and majority_vote do")
    scale = next((name for name in SCALES if name in recipe.rollout.innermost.settings), "")
    if scaled and not scale:
        raise RewardlabError(f"{name} has none of the settings {', '.join(SCALES)}, so no budget can decide how much it spends")
    if scaled and scale in settings:
        raise RewardlabError(f"{name}: {scale} is what the budget decides; give a budget or {scale}")
    return Arm(name, recipe, scale)


def _name(method: str | Recipe) -> str:
    if isinstance(method, Recipe):
        return method.name
    return "+".join(registry.spell(name) for name in method.split("+"))


def _own(method: str | Recipe, settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a method takes: their names as given, and its own names for them. What names it goes before the others."""
    plain = {key: key for key in settings if key in _known(method)}
    owned = {key: key.rpartition(".") for key in settings if "." in key}
    dotted = {key: name for key, (owner, _, name) in owned.items() if registry.spell(owner) == _name(method)}
    return {key: name for key, name in plain.items() if name not in dotted.values()} | dotted


def _known(method: str | Recipe) -> set[str]:
    # all methods of a search are answered by the same
    if isinstance(method, Recipe):
        return set(PLAYED)
    return PLAYED.keys() | {p.flag.removeprefix("--").replace("-", "_").rpartition(".")[2] for p in registry.parameters(method)}
