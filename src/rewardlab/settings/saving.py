"""Values of hyperparameters: unchangeable, as plain data, and as text. Parts are recognised by their method `to_json`."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from rewardlab.errors import RewardlabError

# ----------------------------------------------------------------------------------------------------------------------
#
# Parts in pickles: a function is found again by its module and name, where its decorator has put the factory of the part.


def reduced(part: Any) -> tuple[Any, ...]:
    """What a pickle holds of a part. Raises RewardlabError for one whose function cannot be found again by its name."""
    function = part.function
    where = function.__module__, function.__qualname__
    if _factory(*where).function is not function:
        raise RewardlabError(f"the part {part} cannot be pickled: {':'.join(where)} is another one now")
    # the function, its options and what follows from them come from the factory; a cached value is made again
    kept = {k: v for k, v in vars(part).items() if k not in ("function", "options", "settings", "__doc__")}
    return _again, (type(part), *where, kept)


def _again(kind: Any, module: str, name: str, kept: dict[str, Any]) -> Any:
    factory = _factory(module, name)
    part = kind.__new__(kind)
    vars(part).update(kept, function=factory.function, options=factory.options, __doc__=factory.function.__doc__)
    return part


def _factory(module: str, name: str) -> Any:
    """The decorated function. Factories are recognised by their method `make`, since `part.py` imports this."""
    try:
        found: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
        return _decorated(found)
    except (ImportError, AttributeError, TypeError) as e:
        raise RewardlabError(
            f"the part {module}:{name} cannot be pickled, or read again: it is not found by its name. Write it at the top level of "
            "a file that can be imported, neither in a function nor in a notebook or script"
        ) from e


def _decorated(found: Any) -> Any:
    if not hasattr(found, "make"):
        raise TypeError(f"{found!r} is no decorated function")
    return found


def tuples(value: Any) -> Any:
    """The value with every list in it made a tuple."""
    if isinstance(value, dict):
        return {k: tuples(v) for k, v in value.items()}
    return tuple(tuples(x) for x in value) if isinstance(value, list | tuple) else value


def plain(value: Any) -> Any:
    """The value as data that JSON can hold; a part becomes its saved form."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise RewardlabError(f"a hyperparameter must be plain data or a part, not {type(value).__name__}")


def show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if hasattr(value, "to_json") else repr(value)
