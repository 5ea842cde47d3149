"""Arguments in another order than a function's: refused in words that name its order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from rewardlab.errors import RewardlabError

Given = ParamSpec("Given")
Result = TypeVar("Result")


def in_order(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, which raises RewardlabError for an argument that is given twice, by its place and by its name, for too many by
    place, and for one that is missing: `train` takes recipe, model and task, and `search` methods and task.
    """
    parameters = inspect.signature(function).parameters.values()
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    needed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]

    @functools.wraps(function)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        order = f"{function.__name__}({', '.join(placed)}) takes these by place, in this order"
        if twice := [(name, value) for name, value in zip(placed, given, strict=False) if name in named]:
            name, value = twice[0]
            others = " or ".join(f"{other}=" for other in placed if other not in named) or "nothing"
            raise RewardlabError(
                f"{order}: {name} is given twice, as {_shown(value)} by its place and {name}={_shown(named[name])}. Give what is "
                f"another argument by its name: {others}"
            )
        if len(given) > len(placed):
            raise RewardlabError(f"{order}: there is no place for {_shown(given[len(placed)])}; give it by its name")
        if missing := [name for name in needed[len(given) :] if name not in named]:
            others = f", and not as {' or '.join(f'{name}=' for name in named)}" if named else ""
            raise RewardlabError(f"{order}: {' and '.join(missing)} must be given{others}")
        return function(*given, **named)

    return checked


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
