"""Hyperparameters: the keyword-only arguments of a decorated function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rewardlab.errors import unknown

from .domain import check_values
from .misuse import check_scalar


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
            raise unknown(f"hyperparameter of {function.__name__}", name, known)


def check_settings(function: Callable, settings: Mapping[str, Any]) -> None:
    """Raise RewardlabError for a name that is not a hyperparameter, and for a value outside its domain."""
    check_names(function, settings)
    for name, value in settings.items():
        check_scalar(function, name, value)
    check_values(function, settings, of=f" of {function.__name__}")
