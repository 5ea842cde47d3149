"""Functions that were given in Python and stand in no file by a name: kept by this process, and found by what their parts say.

A part holds plain data, so that a recipe is saved, compared and shown: the function's name, where it was written, and a hash of its
code, by which a run that is resumed knows whether it is given the same one again.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CellType, CodeType
from typing import Any

from rewardlab.errors import RewardlabError

Key = tuple[str, str, str]
"""Name, place and code of a function."""
DEPTH = 8
"""How deep in one another the values lie that a hash of a function counts: two functions may close over each other."""

_held: dict[Key, Any] = {}


def hold(function: Any) -> Key:
    """Keep a function; what it is found by. Two of one place and code, such as those that a loop makes, have different places."""
    name, place, code = name_of(function), place_of(function), code_of(function)
    number = 1
    while _held.setdefault(key := (name, place if number == 1 else f"{place} ({number})", code), function) is not function:
        number += 1
    return key


def is_held(key: Key) -> bool:
    """Whether this process has the function."""
    return key in _held


def put(key: Key, function: Any) -> None:
    """Let this function be the one of a part that another process made."""
    _held[key] = function


def held(key: Key) -> Any:
    """The function of a part. Raises RewardlabError in a process that was not given it."""
    if key not in _held:
        name, place, _ = key
        raise RewardlabError(
            f"the reward {name} was given as a function in Python ({place}), and this process does not have it: write it in a file "
            "of its own and name it, --reward FILE.py:NAME; a run that began with it is resumed in Python, by "
            "rewardlab.resume(FOLDER, reward=...)"
        )
    return _held[key]


def name_of(function: Any) -> str:
    """The name of a function, or that of the class of an object that can be called; lambda for one without a name."""
    inner = _innermost(function)
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")


def file_of(function: Any) -> Path:
    """The file of a function's code: a name in angle brackets where it was typed in."""
    code = _code(function)
    return Path(code.co_filename if code else "Python")


def place_of(function: Any) -> str:
    code = _code(function)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else type(function).__name__


def code_of(function: Any) -> str:
    """A hash of a function's code, of its defaults, and of what it closes over as far as that is plain data; after the version of
    Python, which decides how code is written down."""
    digest = hashlib.blake2b("\x1f".join(_said(function, DEPTH)).encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{sys.version_info.major}.{sys.version_info.minor}-{digest}"


def _innermost(function: Any) -> Any:
    """The function below partial objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _code(function: Any) -> CodeType | None:
    inner = inspect.unwrap(_innermost(function))
    own = getattr(inner, "__code__", None) or getattr(vars(type(inner)).get("__call__"), "__code__", None)
    return own if isinstance(own, CodeType) else None


def _said(value: Any, depth: int) -> Iterator[str]:
    """All that tells one value from another, where that is plain data or code; else its type alone."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield repr(value)
        return
    if not depth:
        return
    if isinstance(value, CodeType):
        yield from (value.co_code.hex(), *value.co_names, *value.co_varnames)
        value = value.co_consts
    if isinstance(value, set | frozenset):
        # their order differs from process to process
        value = sorted(map(repr, value))
    if isinstance(value, dict):
        value = [x for pair in value.items() for x in pair]
    if isinstance(value, list | tuple):
        yield f"[{len(value)}"
        for x in value:
            yield from _said(x, depth - 1)
        return
    yield type(value).__qualname__
    yield from _of_function(value, depth - 1)


def _of_function(value: Any, depth: int) -> Iterator[str]:
    """What is said of a function, of a partial object, and of an object that can be called."""
    if isinstance(value, functools.partial):
        yield from _said([value.func, value.args, value.keywords], depth)
    elif isinstance(code := getattr(value, "__code__", None), CodeType):
        cells = [_content(cell) for cell in getattr(value, "__closure__", None) or ()]
        yield from _said([code, value.__defaults__, value.__kwdefaults__, cells, getattr(value, "__self__", None)], depth)
    elif callable(value) and not inspect.isclass(value):
        yield from _said([_code(value), dict(getattr(value, "__dict__", {}))], depth)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    # the variable has no value yet
    except ValueError:
        return None
