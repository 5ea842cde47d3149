"""Hyperparameters: the keyword-only arguments of a decorated function."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import check_values
from rewardlab.settings.old_names import unknown_setting

# ---- Mistakes in writing recipes that Python itself would let pass, or report as a riddle ----------------------------

SCALARS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false"}
"""Kinds of settings that hold no part, by their annotation or the type of their default."""


class NotCalled:
    """What a decorator makes: it has to be called before it can be combined with other parts."""

    __name__: str

    def _not_called(self, *other: Any) -> Any:
        raise RewardlabError(f"{self.__name__} was not called: write {self.__name__}(...)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _not_called
    __rshift__ = __rrshift__ = __neg__ = _not_called


def refuse_positional(name: str, value: Any) -> None:
    """Raise RewardlabError for a value given to a part by position."""
    if hasattr(value, "slot"):
        raise RewardlabError(f"{name}(...) takes no other {value.slot}, such as {value}; its settings are written by name")
    raise RewardlabError(f"{name} takes settings by name, {name}(setting=...), and got {type(value).__name__} {str(value)[:60]!r}")


def check_scalar(function: Callable, name: str, value: Any) -> None:
    """Raise RewardlabError for a part in the place of a number or a text, and for one that was not called.

    Parts are recognised by their slot, since `part.py` imports this.
    """
    if isinstance(value, NotCalled):
        raise RewardlabError(f"{name} of {function.__name__}: {value.__name__} was not called: write {value.__name__}(...)")
    if not hasattr(value, "slot"):
        return
    parameter = inspect.signature(function).parameters[name]
    written = inspect.formatannotation(parameter.annotation).strip("'\"").removesuffix(" | None")
    kind = type(parameter.default).__name__ if parameter.annotation is parameter.empty else written
    if kind in SCALARS:
        raise RewardlabError(f"{name} of {function.__name__} must be {SCALARS[kind]}, not the {value.slot} {value}")


def positional(function: Callable) -> list[inspect.Parameter]:
    """The arguments of a function that may be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]


BY_NAME = (
    "completion", "completion_id", "response", "reply", "text", "solution_str", "query", "prompt", "question", "answer", "solution",
    "ground_truth", "gold", "label", "meta", "data_source", "extra_info",
)  # fmt: skip
"""What plain functions in a file are given by these names, and their plurals; a decorated reward is given the trajectory."""


def check_reward(function: Callable, over: str) -> None:
    """Raise RewardlabError for a reward function whose arguments would be filled with something else than its writer meant."""
    name, given = function.__name__, positional(function)
    # a second argument gets the run: a setting in its place would silently hold the run
    if len(given) not in (1, 2) or (len(given) == 2 and given[1].default is not given[1].empty):
        raise RewardlabError(
            f"@reward {name}: write def {name}({over}, *, setting=1.0) or def {name}({over}, run, *, setting=1.0); settings come "
            "after the *"
        )
    names = {*BY_NAME, *(f"{name}s" for name in BY_NAME), "replies", "queries"}
    if (len(given) == 2 and given[1].name.lstrip("_") != "run") or given[0].name in names:
        raise RewardlabError(
            f"@reward {name}({', '.join(p.name for p in given)}): a decorated reward is given the {over}, and as a second argument "
            f"the run: write def {name}({over}, run), and read .reply, .problem.answer ...; a plain function in a file, without "
            "@reward, is given completion, answer and columns by name"
        )


def is_number(x: Any) -> bool:
    """Whether x is a finite number. True and False are not: they are conditions, which rewards write as gates (>>)."""
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


MAKERS: dict[str, Callable[[Any], Any]] = {}
"""By slot: makes a part of a plain function that is given for one. Whoever defines the slot puts it here."""


def takes_plain(slot: str, value: Any) -> bool:
    """Whether a value is no part, and one can be made of it by `MAKERS`. Parts, which can be called too, have a slot."""
    return slot in MAKERS and callable(value) and not hasattr(value, "slot") and not isinstance(value, NotCalled)


def advice(value: Any) -> str:
    """How to make a reward of a plain function or a text, to go after an error; empty for all else."""
    if inspect.isfunction(value):
        return "; decorate the function with @rewardlab.reward and call it"
    return '; a reward by its name is rewardlab.part("reward", name)' if isinstance(value, str) else ""


@functools.cache
def hyperparameters(function: Callable) -> Mapping[str, Any]:
    """Keyword-only arguments and their defaults (`inspect.Parameter.empty` where there is none)."""
    parameters = inspect.signature(function).parameters.values()
    # read-only, because the cache hands the same mapping to every caller
    return MappingProxyType({p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY})


def check_names(function: Callable, names: Iterable[str]) -> None:
    known = hyperparameters(function)
    for name in names:
        if name not in known:
            raise unknown_setting(f"hyperparameter of {function.__name__}", name, known)


def check_settings(function: Callable, settings: Mapping[str, Any]) -> None:
    """Raise RewardlabError for a name that is not a hyperparameter, and for a value outside its domain."""
    check_names(function, settings)
    for name, value in settings.items():
        check_scalar(function, name, value)
    check_values(function, settings, of=f" of {function.__name__}")
