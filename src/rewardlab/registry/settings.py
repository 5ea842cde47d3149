"""Settings of a stack of methods: their owners and types.

    grpo+hapo  with  {"group_size": 8, "hapo.weight": 2.0, "lr": 1e-4}

A setting goes to the one method whose function has a keyword of that name; `hapo.weight` names the method; the fields
of `Update` are settings of every method.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.core import Recipe, Update
from rewardlab.core.part import Expression
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.stack import stack
from rewardlab.settings.domain import (
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SHARE,
    WHOLE,
    Domain,
    OutOfDomain,
    Setting,
    check_value,
    setting_of,
    settings_of,
)
from rewardlab.settings.hyperparameters import hyperparameters
from rewardlab.settings.old_names import unknown_setting

Method = tuple[str, Callable[..., Recipe]]
UPDATE = {f.name: f for f in fields(Update) if f.metadata.get("setting", True)}
OWN_METHODS = f"{Path(__file__).parents[1] / 'methods'}{os.sep}"
OF_PACKAGE: dict[str, Domain] = {
    **dict.fromkeys(("n", "keep", "each", "every", "points", "turns", "iterations", "passes", "past"), POSITIVE),
    **dict.fromkeys(("worlds", "pairs", "way", "states", "actions"), POSITIVE),
    **dict.fromkeys(("beta", "weight", "c", "gain", "proposer", "entropy", "damping", "cost", "outer_lr", "rho"), NOT_NEGATIVE),
    **dict.fromkeys(("desirable", "undesirable", "start", "end", "alpha", "coefficient"), NOT_NEGATIVE),
    **dict.fromkeys(("cache", "share", "well_formed", "decay", "least", "width", "spare", "low", "high"), SHARE),
}
"""Domains of settings of the package's own methods, by name, where a method multiplies with its setting or hands it to a part of
its own: no shared part then checks it. They are not in the methods' files, whose hash tells whether a result is still theirs."""


class Parameter(NamedTuple):
    """One setting of a stack: its command-line flag, the name of its type, its default, the method that owns it, and its values."""

    flag: str
    type: str
    default: Any
    method: str
    values: str


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
    with _in_the_users_words(bound):
        recipe = stack([(name, function, bound[name]) for name, function in methods])
    return recipe.but(**update).validate()


@contextlib.contextmanager
def _in_the_users_words(bound: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Name the setting in place of the part that refused its value: the user gave `value_lr`, and `lr` is refused."""
    try:
        yield
    except OutOfDomain as e:
        given = [(key, method) for method, settings in bound.items() for key, value in settings.items() if value is e.value]
        # the same name, if there is one: of two settings with this value, it is the likelier
        same = e.name.split()[0]
        for key, method in sorted(given, key=lambda setting: setting[0] != same)[:1]:
            raise OutOfDomain(f"{key} of {method}", e.says, e.value) from e
        raise


def with_base(methods: Sequence[Method], base: Method | None, settings: Iterable[str]) -> list[Method]:
    """The methods, upon the one that they build on (None: there is none) if it alone takes one of these settings: --n of hapo is
    that of grpo+hapo.
    """
    if base is None:
        return list(methods)
    own, below = {k for _, f in methods for k in hyperparameters(f)} | UPDATE.keys(), hyperparameters(base[1])
    wanted = any(
        name in below and (owner == base[0] or (not dot and name not in own)) for owner, dot, name in map(_apart, settings)
    )
    return [base, *methods] if wanted else list(methods)


def _apart(setting: str) -> tuple[str, str, str]:
    """`grpo.n` as grpo, the dot and n; of plain `n` the first two are empty."""
    return setting.rpartition(".")


def parameters(methods: Sequence[Method], base: Method | None = None) -> list[Parameter]:
    """The settings a stack takes: first its methods', then those of the method that it builds on which none of them has and which
    change something here, then those of the update.
    """
    recipe = compose(methods, {})
    domains = _part_domains(recipe)
    owned = [(name, function, key) for name, function in methods for key in hyperparameters(function)]
    if base is not None:
        known, below = {key for _, _, key in owned}, hyperparameters(base[1])
        owned += [(base[0], base[1], key) for key in below if key not in known and _matters(methods, base, key)]
    times = Counter(key for _, _, key in owned)
    of_methods = [
        _parameter(key if times[key] == 1 else f"{name}.{key}", f, key, hyperparameters(f)[key], name, domains.get(key))
        for name, f, key in owned
    ]
    rest = [k for k in UPDATE if k not in times]
    return of_methods + [_parameter(k, Update, k, getattr(recipe.update, k), "update") for k in rest]


def _matters(methods: Sequence[Method], base: Method, key: str) -> bool:
    """Whether a number of the base may be another one: a method that replaces the part that it goes into would drop it."""
    default = hyperparameters(base[1])[key]
    if isinstance(default, bool) or not isinstance(default, int | float):
        return False
    try:
        compose([base, *methods], {f"{base[0]}.{key}": default + 1 if isinstance(default, int) else default / 2 or 0.1})
    except RewardlabError:
        return False
    return True


def _part_domains(recipe: Recipe) -> dict[str, Setting]:
    """The settings of the recipe's parts, by name: a method's setting goes into the part's of the same name, which checks it."""
    parts = (part for slot in recipe.parts().values() for part in slot.walk() if not isinstance(part, Expression))
    return {name: setting for part in parts for name, setting in settings_of(part.function).items()}


def _parameter(written: str, owner: Callable, key: str, default: Any, method: str, of_part: Setting | None = None) -> Parameter:
    kind, domain, optional = _setting(owner, key)
    if of_part and of_part.kind is kind and domain in (WHOLE, NUMBER):
        domain = of_part.domain
    values = f"{domain.says}{', or none' if optional else ''}" if domain else "any"
    return Parameter(f"--{written.replace('_', '-')}", kind.__name__ if kind else "value", default, method, values)


def fit(function: Callable, name: str, value: Any) -> Any:
    """This value in the type of the function's setting. Raises OutOfDomain for one that the setting may not have."""
    setting = _setting(function, name)
    # a whole number is a fine float, but bool is a subclass of int
    if setting.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if setting.kind is str and isinstance(value, int | float | bool):
        value = json.dumps(value)
    # fields of the update are settings of the run, and need no owner
    check_value(name if function is Update else f"{name} of {function.__name__}", setting, value)
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
            raise unknown_setting(f"setting of {method}", name, own.keys() | UPDATE.keys())
        return (method if name in own else None), name
    owners = [m for m, f in functions.items() if key in hyperparameters(f)]
    if len(owners) > 1:
        written = " or ".join(f"{m}.{key}" for m in owners)
        raise RewardlabError(f"{' and '.join(owners)} both take {key}; write {written}")
    if not owners and key not in UPDATE:
        known = {k for f in functions.values() for k in hyperparameters(f)}
        raise unknown_setting(f"setting of {'+'.join(functions)}", key, known | UPDATE.keys())
    return (owners[0] if owners else None), key


def _setting(function: Callable, name: str) -> Setting:
    """What is known of a setting: from its annotation; without one, from its default."""
    setting, default = settings_of(function)[name], inspect.signature(function).parameters[name].default
    if setting.domain in (WHOLE, NUMBER) and name in OF_PACKAGE and function.__code__.co_filename.startswith(OWN_METHODS):
        domain = OF_PACKAGE[name]
        # a whole number is no share: the width of a tree is not that of an interval; nor may a name refuse the default
        other = (setting.domain is WHOLE and domain is SHARE) or not (default is None or domain.holds(default))
        return setting if other else setting._replace(domain=domain)
    if setting.kind or inspect.signature(function).parameters[name].annotation is not inspect.Parameter.empty:
        return setting
    return setting_of(type(default))
