"""Models beside the policy that are named by a checkpoint: judges of a reward, which become models of the run; checked by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.api.checking import parts_of
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Learner, Part, Recipe
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, absolute_name, find, is_packaged, kind_of
from rewardlab.models.learners import named_start
from rewardlab.registry.names import JUDGES, OF_RUNS
from rewardlab.registry.playing import changed_in


def with_judges(recipe: Recipe) -> Recipe:
    """The recipe with a frozen model of its run for each judge of its reward that is named by a checkpoint: smollm2, a folder, a
    run, ORG/NAME.

    Raises RewardlabError for a judge, a reward model or the start of a second model that there is not.
    """
    for part in parts_of(recipe):
        _check_scorer(str(part.settings.get("model", "")))
    recipe = recipe if recipe.reward is None else _with_models(recipe, recipe.reward)
    for learner in recipe.also:
        name = named_start(learner.init)
        if name and not is_served(name) and kind_of(name) not in NAMES:
            try:
                find(name, weights=False)
            except RewardlabError as problem:
                raise RewardlabError(f"the model {learner.name!r} of {recipe.name or 'this recipe'}: {problem}") from None
    return recipe


def _check_scorer(name: str) -> None:
    """Raise RewardlabError where a reward reads a trained model (prm:PATH, model:PATH) from a folder that is not there.

    Of a convention that cannot be told, or a setting that there is not, its loading says so.
    """
    kind, _, rest = name.partition(":")
    place = rest.partition("?")[0]
    if kind in ("prm", "model") and place and kind_of(place) not in NAMES and not is_packaged(place):
        find(place, weights=False)


def _with_models(recipe: Recipe, reward: Any) -> Recipe:
    known, others = {learner.name for learner in recipe.also}, list(recipe.also)
    names: dict[str, str] = {}
    for part in reward.walk():
        model = part.settings.get("model") if part.name in JUDGES else None
        if not isinstance(model, str) or model in (*OF_RUNS, *known) or is_served(model) or model in names:
            continue
        init = _placed(model)
        names[model] = next(name for i in range(1, 99) if (name := "judge" + str(i) * (i > 1)) not in known)
        known.add(names[model])
        others.append(Learner(names[model], init, Recipe(), every=0))
    if not names:
        return recipe

    def named(part: Part) -> Part:
        mine = getattr(part, "name", "") in JUDGES and part.settings.get("model") in names
        return part.but(model=names[part.settings["model"]]) if mine else part

    return replace(recipe, reward=changed_in(reward, named), also=tuple(others))


def _placed(model: str) -> str:
    try:
        return model if kind_of(model) in NAMES or is_packaged(model) else absolute_name(model)
    except RewardlabError as problem:
        raise RewardlabError(
            f"the judge {model!r} is neither a model of the run (policy, reference), nor smollm2, a folder or a run, nor is it "
            f"served (openai:URL#NAME): {problem}"
        ) from None
