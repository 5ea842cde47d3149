"""The arms of a comparison: methods under their settings, or recipes made in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rewardlab import registry
from rewardlab.api.checking import parts_of
from rewardlab.api.given_rewards import refuse_in_python
from rewardlab.api.measuring import is_own, measured, tells_pairs_apart
from rewardlab.checks.runs import kind_of
from rewardlab.core import Recipe, Task, Update
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.formula import reward_from
from rewardlab.registry.names import PLAYED
from rewardlab.registry.replaced import changes_reward_alone, told_replaced
from rewardlab.rewards.reward import Reward
from rewardlab.settings.old_names import unknown_setting
from rewardlab.util.progress import console

IN_PYTHON = (
    'say in Python what each is paid: compare([build("grpo").but(reward=MINE, name="plain"), '
    'build("grpo").but(reward=MINE + OTHER, name="shaped")])'
)
"""How recipes with different rewards are compared, for a message."""
OF_A_REWARD = ("own_reward", "mean_reward", "reward_and_kl")
"""Measures whose leading number is `reward`, of whichever reward they are told."""
UPDATE = {f.name for f in fields(Update)}
ONE_REPLY, SELECTED = "pass@1", "accuracy"
"""The share of right answers: of a trained policy that replies once, and of a method that selects an answer without training."""
SAME = ((ONE_REPLY, SELECTED), ("train.length", "tokens_per_answer"))
"""What a trained policy and a method that selects answers call the same thing."""


@dataclass(frozen=True)
class Arm:
    """One side of a comparison.  name: distinct among the arms, in tables and names of folders.

    of, knob, at: where several values of a setting are compared, the method, the setting, and its value here.
    """

    name: str
    recipe: Recipe
    of: str = ""
    knob: str = ""
    at: float | None = None

    @property
    def trains(self) -> bool:
        return kind_of(self.recipe) == "train"

    @property
    def folder(self) -> str:
        return self.name.replace("/", "-")

    def measured_by(self, measure: str) -> str:
        """The name under which this arm measures a number: what `pass@1` is to a policy, `accuracy` is to a selection (SAME)."""
        return next((same[not self.trains] for same in SAME if measure in same), measure)


def arms_of(methods: Sequence[str | Recipe], settings: Mapping[str, Any] | None = None, reward: Any = None) -> list[Arm]:
    """The arms of a comparison.

    settings: `n` goes to every method that has it, `grpo.n` to grpo alone or in a stack, and counts where both are given; fields of
    Update (lr, problems ...) go to all, and so does what answers replies (env, tools or corpus, and turns). Several values of a
    number, [0.5, 1, 2] or the text "0.5,1,2", make an arm of each, named hapo:weight=0.5; one setting of a method may have several.
    reward: in place of the reward of every method that has one, in any form of `formula.reward_from`.
    Raises RewardlabError for a setting that no method has or that changes nothing, for fewer than two arms, and for what cannot be
    compared.
    """
    if isinstance(methods, str):
        raise RewardlabError(f"methods are given in a list: compare([{methods!r}, ...])")
    settings, names = dict(settings or {}), [_name(m) for m in methods]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise RewardlabError(f"{repeated} is named twice; give every method once, and recipes distinct names: recipe.but(name=...)")
    _same_turns(methods, names, settings)
    taken = [_settings_of(m, settings) for m in methods]
    _all_taken(methods, names, settings, taken)
    arms = [arm for method, own in zip(methods, taken, strict=True) for arm in _arms_of_one(method, settings, own)]
    if len(arms) < 2:
        raise RewardlabError("a comparison is of two methods or more; one is trained by: rewardlab train METHOD")
    if reward is not None:
        rewarded = _rewarded([arm.recipe for arm in arms], reward_from(reward))
        arms = [replace(arm, recipe=recipe) for arm, recipe in zip(arms, rewarded, strict=True)]
    for arm in arms:
        _check(arm)
    if not any(arm.trains for arm in arms) and (inert := [key for key in settings if key.rpartition(".")[2] in UPDATE]):
        held_out = "; held-out problems are --eval-problems" if "problems" in inert else ""
        raise RewardlabError(f"{', '.join(names)} train nothing, so that {', '.join(inert)} would change nothing{held_out}")
    return arms


def _arms_of_one(method: str | Recipe, settings: Mapping[str, Any], taken: Mapping[str, str]) -> list[Arm]:
    """A method under its settings: one arm, or one for each value of the setting that has several."""
    name, numbers = _name(method), _numbers(method)
    values = {own: settings[key] for key, own in taken.items()}
    several = {own: found for own, value in values.items() if own.rpartition(".")[2] in numbers and (found := _several(value))}
    if not several:
        return [Arm(name, _built(method, values).but(name=name))]
    if len(several) > 1:
        raise RewardlabError(f"{name} has several values of {' and '.join(several)}; one setting of a method may have several")
    ((knob, points),) = several.items()
    if len(set(points)) < len(points):
        raise RewardlabError(f"{knob} of {name} has a value twice: {', '.join(map(str, points))}")
    arms = []
    for at in points:
        distinct = f"{name}:{knob.rpartition('.')[2]}={at}"
        arms.append(Arm(distinct, _built(method, values | {knob: at}).but(name=distinct), name, knob.rpartition(".")[2], at))
    return arms


def _built(method: str | Recipe, values: Mapping[str, Any]) -> Recipe:
    return registry.with_settings(method, values) if isinstance(method, Recipe) else registry.build(method, values)


def _several(value: Any) -> list[Any]:
    """The values of a list, or of a text with commas; none for any other value."""
    if isinstance(value, str) and "," in value:
        value = [registry.parse_value(part) for part in filter(None, value.replace(" ", "").split(","))]
    return value if isinstance(value, list) else []


def _numbers(method: str | Recipe) -> set[str]:
    """The settings of a method that are numbers, without the names of methods before them."""
    if isinstance(method, Recipe):
        return UPDATE | {"turns"}
    return {"turns"} | {_plain(p.flag) for p in registry.parameters(method) if p.type in ("int", "float")}


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
    # all methods of a comparison are answered by the same
    known = UPDATE | PLAYED.keys()
    return known if isinstance(method, Recipe) else known | _own(method)


def _own(method: str) -> set[str]:
    return {_plain(p.flag) for p in registry.parameters(method)}


def _plain(flag: str) -> str:
    """The setting that a flag is for: weight for --hapo.weight."""
    return flag.removeprefix("--").replace("-", "_").rpartition(".")[2]


def _same_turns(methods: Sequence[str | Recipe], names: list[str], settings: Mapping[str, Any]) -> None:
    """Raise RewardlabError where turns are for all, and nothing that answers is, so that some would have others than they say."""
    if "turns" not in settings or any(name in settings for name in PLAYED if name != "turns"):
        return
    own = {name for m, name in zip(methods, names, strict=True) if isinstance(m, str) and "turns" in _own(m)}
    if others := [name for name in names if name not in own]:
        of_one = f", or to the others alone: --{min(own)}.turns {settings['turns']}" if own else ""
        raise RewardlabError(
            f"{others[0]} has no turns of its own: give them with what answers all methods (--env, --tools or --corpus){of_one}. A "
            "task with an environment of its own says them in its name: --task babyai:GoToLocal,turns=4"
        )


def _all_taken(methods: Sequence[str | Recipe], names: list[str], settings: Mapping[str, Any], taken: list[dict[str, str]]) -> None:
    """Raise RewardlabError for a setting that would change nothing."""
    for key in settings:
        if any(key in own for own in taken):
            continue
        owner, dot, _ = key.rpartition(".")
        if dot:
            raise unknown("method of this comparison", owner, {*names, *(part for name in names for part in name.split("+"))})
        raise unknown_setting(f"setting of {', '.join(names)}", key, set().union(*map(_known, methods)))


def _rewarded(recipes: list[Recipe], reward: Reward) -> list[Recipe]:
    """The recipes with this reward in place of their own; says where one loses parts of it. Raises RewardlabError where
    none has a reward, and where nothing would be left of what is compared.
    """
    if all(recipe.reward is None for recipe in recipes):
        names = " and ".join(recipe.name for recipe in recipes)
        raise RewardlabError(f"{names} learn from no reward, so that a reward of your own would change nothing")
    rewarded = [recipe if recipe.reward is None else recipe.scored_by(reward) for recipe in recipes]
    each = [recipe.but(name="", measure=None) for recipe in rewarded]
    alike = [recipes[i].name for i, one in enumerate(each) if each.count(one) > 1 and recipes[i].reward is not None]
    if alike:
        raise RewardlabError(
            f"{', '.join(alike)}: these differ by their rewards alone, which yours replaces: they would be one method under "
            f"{len(alike)} names; leave out all but one, or {IN_PYTHON}"
        )
    for recipe in recipes:
        if not (told := told_replaced(recipe)):
            continue
        if changes_reward_alone(recipe):
            raise RewardlabError(f"{told}; leave {recipe.name} out, or {IN_PYTHON}")
        console.print(f"note: {told}", markup=False, highlight=False, soft_wrap=True)
    return rewarded


def shared_reward(arms: Sequence[Arm]) -> Reward | None:
    """The reward that pays every arm that learns from one; None where they are paid by different ones, or none is paid."""
    rewards = [arm.recipe.reward for arm in arms if arm.trains and isinstance(arm.recipe.reward, Reward)]
    return rewards[0] if rewards and all(reward == rewards[0] for reward in rewards) else None


def measured_alike(arms: Sequence[Arm], task: Task) -> list[Arm]:
    """The arms as they are measured: a reward of the user's own that they share is what all are measured by, as in `train`
    (`api/measuring.py`), those too that learn from none. Without answers, nothing is measured by the task's verifier, and what
    learns from pairs is measured on those held out.

    Decided here and not in each run: a measure that is wrapped, so that runs share what they measure before training
    (`checks/kept.py`), stays whatever it asks.
    """
    shared = shared_reward(arms)
    return [replace(arm, recipe=_measured(arm.recipe, shared, task)) if arm.trains else arm for arm in arms]


def _measured(recipe: Recipe, shared: Reward | None, task: Task) -> Recipe:
    if shared is not None and is_own(paid := recipe.but(reward=shared), task):
        # what another reward pays goes by the same name
        of_another = recipe.measure is not None and recipe.measure.name in OF_A_REWARD
        return recipe.but(measure=measured(paid.but(measure=None) if of_another else paid, task).measure)
    by_verifier = measured(recipe.but(reward=None), task).measure
    if by_verifier is not None and tells_pairs_apart(by_verifier):
        return recipe.but(measure=by_verifier)
    return recipe.but(measure=None) if recipe.measure is not None and by_verifier is None else recipe


def _check(arm: Arm) -> None:
    if arm.recipe.study is not None:
        raise RewardlabError(
            f"{arm.name}: a study trains no policy and has no metric to compare; run it with: rewardlab study {arm.name}"
        )
    refuse_in_python("the runs of a comparison are processes of their own", *parts_of(arm.recipe))
    # runs are processes of their own, in which the module __main__ is another
    if ":__main__:" in json.dumps(arm.recipe.to_json()):
        raise RewardlabError(
            f"{arm.name} has parts that are defined in a script or notebook, where other processes cannot import them; "
            "move them into a module (a file NAME.py beside it) and import them from there"
        )
