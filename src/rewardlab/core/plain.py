"""Values of hyperparameters: unchangeable, as plain data, and as text. Parts are recognised by their method `to_json`."""

from __future__ import annotations

from typing import Any

from rewardlab.errors import RewardlabError


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
