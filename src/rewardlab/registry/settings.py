"""Settings of a stack of methods: which method each belongs to, and whether its value has the right type.

    grpo+hapo  with  {"group_size": 8, "hapo.weight": 2.0, "lr": 1e-4}

A setting goes to the one method whose function has a keyword of that name; `hapo.weight` names the method; the fields
of `Update` are settings of every method.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from rewardlab.core import Recipe, Update
from rewardlab.core.part import hyperparameters
from rewardlab.errors import RewardlabError, unknown

from .stack import stack

Method = tuple[str, Callable[..., Recipe]]
SCALARS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
UPDATE = {f.name: f for f in fields(Update)}


class Parameter(NamedTuple):
    """One setting of a stack: its command-line flag, the name of its type, its default, and the method that owns it."""

    flag: str
    type: str
    default: Any
    method: str


def compose(methods: Sequence[Method], settings: Mapping[str, Any]) -> Recipe:
    """The recipe of a stack under these settings. Raises RewardlabError for an unknown, ambiguous or ill-typed one."""
    twice = [name for name, n in Counter(name for name, _ in methods).items() if n > 1]
    if twice:
        raise RewardlabError(f"{twice[0]} is named twice in the stack")
    bound: dict[str, dict[str, Any]] = {name: {} for name, _ in methods}
    update: dict[str, Any] = {}
    functions = dict(methods)
    for key, value in settings.items():
        owner, name = _owner(functions, key)
        if owner:
            bound[owner][name] = fit(functions[owner], name, value)
        else:
            update[name] = fit(Update, name, value)
    for name, function in methods:
        require(name, function, bound[name])
    return stack([(name, function, bound[name]) for name, function in methods]).but(**update)


def parameters(methods: Sequence[Method]) -> list[Parameter]:
    """The settings a stack takes: first its methods', then those of the update."""
    owned = [(name, function, key) for name, function in methods for key in hyperparameters(function)]
    times = Counter(key for _, _, key in owned)
    of_methods = [
        Parameter(_flag(key if times[key] == 1 else f"{name}.{key}"), _type_name(f, key), hyperparameters(f)[key], name)
        for name, f, key in owned
    ]
    recipe = compose(methods, {})
    rest = [k for k in UPDATE if k not in times]
    return of_methods + [Parameter(_flag(k), _type_name(Update, k), getattr(recipe.update, k), "update") for k in rest]


def fit(function: Callable, name: str, value: Any) -> Any:
    """This value as the type of the function's keyword, or an error; a keyword without a plain type takes any value."""
    kind, optional = _type_of(function, name)
    if kind is None or (value is None and optional) or not isinstance(value, str | int | float | bool | None):
        return value
    # an integer is a fine float, but bool is a subclass of int
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is str:
        return value if isinstance(value, str) else json.dumps(value)
    # type(), not isinstance: True would pass for 1
    if type(value) is not kind:
        raise RewardlabError(f"{name} of {function.__name__.lower()} must be {TYPE_NAMES[kind]}, not {value!r}")
    return value


def require(name: str, function: Callable, settings: Mapping[str, Any]) -> None:
    """Raise if a keyword without a default has no setting."""
    needed = (k for k, default in hyperparameters(function).items() if default is inspect.Parameter.empty)
    missing = [k for k in needed if k not in settings]
    if missing:
        raise RewardlabError(f"{name} needs {' and '.join(missing)}")


def _owner(functions: Mapping[str, Callable], key: str) -> tuple[str | None, str]:
    """Which method a setting belongs to (None: the update), and its name there."""
    method, dot, name = key.rpartition(".")
    if dot:
        if method not in functions:
            raise unknown("method of this stack", method, functions)
        own = hyperparameters(functions[method])
        if name not in own and name not in UPDATE:
            raise unknown(f"setting of {method}", name, own.keys() | UPDATE.keys())
        return (method if name in own else None), name
    owners = [m for m, f in functions.items() if key in hyperparameters(f)]
    if len(owners) > 1:
        written = " or ".join(f"{m}.{key}" for m in owners)
        raise RewardlabError(f"{' and '.join(owners)} both take {key}; write {written}")
    if not owners and key not in UPDATE:
        known = {k for f in functions.values() for k in hyperparameters(f)}
        raise unknown(f"setting of {'+'.join(functions)}", key, known | UPDATE.keys())
    return (owners[0] if owners else None), key


def _type_of(function: Callable, name: str) -> tuple[type | None, bool]:
    """The plain type of a keyword, from its annotation or else its default, and whether None is allowed."""
    parameter = inspect.signature(function).parameters[name]
    if parameter.annotation is not parameter.empty:
        written = inspect.formatannotation(parameter.annotation).strip("'\"")
        plain = written.removesuffix(" | None")
        return SCALARS.get(plain), plain != written
    kind = type(parameter.default)
    return (kind if kind in TYPE_NAMES else None), False


def _type_name(function: Callable, name: str) -> str:
    kind, _ = _type_of(function, name)
    return kind.__name__ if kind else "value"


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"
