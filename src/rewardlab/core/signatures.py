"""What functions take, as parts and decorators show it: to `help()`, to an editor, and to the checks of names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

from rewardlab.errors import unknown

from .options import PartOptions


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


def call_signature(function: Callable, operands: Collection[str] = ()) -> inspect.Signature:
    """How a part is called: with the function's hyperparameters, and with its operands; what it runs on is not given then."""
    parameters = inspect.signature(function).parameters.values()
    return inspect.Signature([p for p in parameters if p.kind is p.KEYWORD_ONLY or p.name in operands])


def plainly(signature: inspect.Signature) -> str:
    """A signature without its annotations."""
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in signature.parameters.values()]))


def describe_decorator(decorate: Any, slot: str, about: str, options: type[PartOptions]) -> None:
    """Give the decorator of a slot its name, its options as a signature, and a docstring."""
    listed = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, annotation=f.type,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in fields(options)
    ]  # fmt: skip
    function = inspect.Parameter("function", inspect.Parameter.POSITIONAL_ONLY, default=None)
    decorate.__name__ = decorate.__qualname__ = slot
    decorate.__signature__ = inspect.Signature([function, *listed])
    # the options of every slot come last
    texts = dict.fromkeys(inspect.cleandoc(cls.__doc__ or "") for cls in options.__mro__ if issubclass(cls, PartOptions))
    decorate.__doc__ = "\n\n".join([inspect.cleandoc(about), *texts])
