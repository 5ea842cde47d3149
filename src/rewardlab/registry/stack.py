"""Stack methods on one another: every part that one of them brings is kept, or the stack is refused.

A method takes the recipe below it and changes some of it. What it replaces there must be what it also replaces when it is used
alone: a part of its own base, such as the credit of GRPO. Anything else was brought by an earlier method of the stack, and has to
stay. It stays if it is extended (`base.credit >> x`, `base.reward + x`), wrapped (`filter(inner=base.rollout)`), or if its sampler
is replaced by one that takes over its settings (`Part.replace_innermost`). The same holds for learners and for fields of `update`.

A method that is used alone may set the update of the base that it makes (`grpo().but(minibatches=4)`). In a stack the base is the
recipe below, and keeps its update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rewardlab.core import Learner, Part, Recipe, Update
from rewardlab.core.part import Expression
from rewardlab.errors import RewardlabError, located
from rewardlab.settings.domain import OutOfDomain
from rewardlab.settings.hyperparameters import hyperparameters

Method = Callable[..., Recipe]
PACKAGE = Path(__file__).parents[1]


def stack(methods: Sequence[tuple[str, Method, dict[str, Any]]]) -> Recipe:
    """Compose methods left to right. Raises RewardlabError, naming both methods, if one would drop what another brought."""
    if not methods:
        raise RewardlabError("no method named")
    label, method, settings = methods[0]
    recipe = _made(label, method, settings)
    brought_by = dict.fromkeys(_contents(recipe), label)
    for name, method, settings in methods[1:]:
        below, recipe = recipe, _on(recipe, label, name, method, settings)
        old, new = _contents(below), _contents(recipe)
        # what the method replaces when it is used alone, it may replace here
        bases = [_contents(base) for base in list(method(**settings).lineage())[1:]]
        for what in (what for what in old if not _keeps(new.get(what), old[what], [base.get(what) for base in bases])):
            raise RewardlabError(
                f"{brought_by[what]} and {name} cannot be stacked: {name} replaces the {what} that {brought_by[what]} brings, "
                f"{_shown(old[what])}, by {_shown(new.get(what))}"
            )
        brought_by |= {what: name for what in new if new[what] != old.get(what)}
        label = f"{label}+{name}"
    return recipe.but(name=label)


def _made(name: str, method: Method, settings: dict[str, Any], *below: Recipe) -> Recipe:
    """What a method's function returns. Raises RewardlabError if that is no recipe, and names the line of an error in a user's
    method.
    """
    file = method.__code__.co_filename
    try:
        recipe = method(*below, **settings)
    except OutOfDomain:
        # a setting's own message names it
        raise
    except Exception as e:
        # what does not fit a stack is told as such, with both names
        if Path(file).is_relative_to(PACKAGE) or (below and isinstance(e, RewardlabError)):
            raise
        raise RewardlabError(f"the method {name} of {located(e, file)}") from e
    if not isinstance(recipe, Recipe):
        raise RewardlabError(f"the function {name} of {file} returned {recipe!r:.80}; a method returns a recipe")
    return recipe


def _on(below: Recipe, label: str, name: str, method: Method, settings: dict[str, Any]) -> Recipe:
    """A method applied to the recipe below it; all its settings must matter there."""
    try:
        recipe = _made(name, method, settings, below)
    except OutOfDomain:
        # a wrong value is wrong without the stack, too
        raise
    except RewardlabError as e:
        raise RewardlabError(f"{label} and {name} cannot be stacked: {e}") from e
    defaults = hyperparameters(method)
    for key in (k for k, v in settings.items() if v != defaults[k]):
        # a setting that changes nothing here would be ignored silently
        if _same(recipe, method, below, {**settings, key: defaults[key]}):
            raise RewardlabError(f"{name}.{key} has no effect on {label}: it is a setting of the base that {name} has when alone")
    return recipe


def _same(recipe: Recipe, method: Method, below: Recipe, settings: dict[str, Any]) -> bool:
    """Whether the method makes the same recipe under these settings. Ones that do not go together make none."""
    try:
        return recipe == method(below, **settings)
    except RewardlabError:
        return False


def _contents(recipe: Recipe) -> dict[str, Any]:
    """All that a method could drop: parts by slot, learners by name, fields of the update."""
    learners = {f"learner {learner.name}": learner for learner in recipe.also}
    return {**recipe.parts(), **learners, **{f"update {f.name}": getattr(recipe.update, f.name) for f in fields(Update)}}


def _keeps(new: Any, old: Any, bases: list[Any]) -> bool:
    """Whether `new`, made by a method that has these bases when it is used alone, still has what is only in `old`."""
    if new == old or old in bases:
        return True
    if not isinstance(new, Part) or not isinstance(old, Part):
        return False
    return _extends(new, old) or any(isinstance(base, Part) and _takes_over(new, old, base) for base in bases)


def _extends(new: Part, old: Part) -> bool:
    """Whether `new` contains `old`: undivided, or, for a chain or sum, its operands in their order."""
    if new.contains(old):
        return True
    # two functions of one slot that are given the same part, such as two measures of one rollout, are no extension of each other
    if type(new) is not type(old) or new.name != old.name or not old.of or not _as_set(new, old):
        return False
    # one iterator over all of `old.of`: `any` advances it, so operands are matched in their order
    operands = iter(new.of)
    return all(any(part == x for x in operands) for part in old.of)


def _as_set(new: Part, old: Part) -> bool:
    """Whether the numbers and texts that `old` sets, and does not leave at their defaults, are the same in `new`."""
    if isinstance(old, Expression):
        return True
    usual = hyperparameters(old.function)
    parts = {key for key, value in old.settings.items() if any(isinstance(x, Part) for x in _within(value))}
    return all(new.settings[key] == value for key, value in old.settings.items() if key not in parts and value != usual[key])


def _within(value: Any) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)


def _takes_over(new: Part, old: Part, base: Part) -> bool:
    """Whether `new` has all wrappers of `old`, and all settings of its innermost part that differ from those of the base's."""
    *wrappers, sampler = _layers(old)
    *others, sampled = _layers(new)
    usual, layers = base.innermost, iter(others)
    # settings of different functions cannot be compared
    if isinstance(sampler, Expression) or isinstance(usual, Expression) or sampler.function is not usual.function:
        return False
    own = {k: v for k, v in sampler.settings.items() if usual.settings[k] != v}
    return all(any(_same_but_inner(wrapper, x) for x in layers) for wrapper in wrappers) and own.items() <= sampled.settings.items()


def _layers(part: Part) -> Iterator[Part]:
    yield part
    if part.inner is not None:
        yield from _layers(part.inner)


def _same_but_inner(a: Part, b: Part) -> bool:
    settings = ({k: v for k, v in part.settings.items() if k != part.options.wraps} for part in (a, b))
    return type(a) is type(b) and a.name == b.name and next(settings) == next(settings)


def _shown(content: Any) -> str:
    return f"from {content.init!r}" if isinstance(content, Learner) else "nothing" if content is None else str(content)
