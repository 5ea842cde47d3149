"""Arguments of tools in the types that their hints promise: a call holds JSON, and a function may ask for an Enum or a date."""

from __future__ import annotations

import datetime
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

WRITTEN: Mapping[Any, Callable[[str], Any]] = {
    datetime.date: datetime.date.fromisoformat,
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    Path: Path,
}
"""Types that are a text in a call, and how that is read."""
PLAIN: Mapping[Any, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int,), float: (int, float), list: (list,), dict: (dict,), NoneType: (NoneType,)
}  # fmt: skip
"""How JSON's values of a type are known."""
LISTED: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    set: set, frozenset: frozenset, abc.Set: set, abc.MutableSet: set, abc.Sequence: list, abc.MutableSequence: list,
    abc.Collection: list, abc.Iterable: list,
}  # fmt: skip
"""Types that are a list in a call, and how they are made of it."""
MAPPED = (abc.Mapping, abc.MutableMapping)
"""Types that are an object in a call, and a dict here."""


def in_json(hint: Any) -> Any:
    """The hint for what a call holds in the place of an argument: the values of an Enum, the text of a date."""
    # NewType
    hint = getattr(hint, "__supertype__", hint)
    if any(hint is kind for kind in WRITTEN):
        return str
    if isinstance(hint, type) and issubclass(hint, Enum) and len(hint):
        return Literal[tuple(member.value for member in hint)]
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return hint
    kind, inner = origin or hint, tuple(map(in_json, inside))
    if kind in LISTED or (kind is tuple and Ellipsis in inside):
        return list[inner[0]] if inner else list  # type: ignore[valid-type]
    if kind in MAPPED:
        return dict[inner[0], inner[1]] if inner else dict  # type: ignore[valid-type]
    if inner == inside:
        return hint
    return Union[inner] if origin in (Union, UnionType) else origin[inner]  # noqa: UP007


def as_hinted(value: Any, hint: Any) -> Any:
    """An argument of a call as its hint says. Raises ValueError or TypeError where it cannot be that."""
    hint = getattr(hint, "__supertype__", hint)
    origin, inside = get_origin(hint), get_args(hint)
    kind = origin or hint
    if kind in (Union, UnionType):
        return _first(value, inside)
    if kind in LISTED or (kind is tuple and Ellipsis in inside):
        _check(value, list)
        return LISTED.get(kind, tuple)(as_hinted(each, inside[0]) if inside else each for each in value)
    if kind is tuple:
        _check(value, list)
        if inside and len(value) != len(inside):
            raise TypeError(f"{len(inside)} values are needed, and {value!r:.60} holds {len(value)}")
        return tuple(map(as_hinted, value, inside)) if inside else tuple(value)
    kind = dict if kind in MAPPED else kind
    if kind in PLAIN:
        _check(value, kind)
    if kind is list and inside:
        return [as_hinted(each, inside[0]) for each in value]
    if kind is dict and inside:
        return {as_key(key, inside[0]): as_hinted(each, inside[1]) for key, each in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    # 3.0 is a whole number in JSON
    if kind is int:
        return int(value)
    return WRITTEN[kind](value) if kind in WRITTEN else value


def as_key(key: str, hint: Any) -> Any:
    """A key of an object, which is a text in JSON."""
    return int(key) if hint is int else float(key) if hint is float else as_hinted(key, hint)


def _check(value: Any, kind: Any) -> None:
    whole = kind is int and isinstance(value, float) and value.is_integer()
    # True is a number in Python, and none in JSON
    if not (whole or isinstance(value, PLAIN[kind])) or (isinstance(value, bool) and kind in (int, float)):
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")


def _first(value: Any, hints: tuple[Any, ...]) -> Any:
    """The value as the first of several hints that it fits."""
    for hint in hints:
        try:
            return as_hinted(value, hint)
        except (ValueError, TypeError):
            continue
    raise ValueError(f"{value!r:.60} is none of what it may be")
