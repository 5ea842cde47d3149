"""Gold calls of the Berkeley leaderboard (BFCL): every accepted value of every argument, {NAME: {argument: [values]}}.

A value "" means that the argument may be left out; no value, that it is left out or empty. Texts are compared without case, spaces
and the marks , . / - _ * ^, as there
(berkeley-function-call-leaderboard/bfcl_eval/eval_checker/ast_eval/ast_checker.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.text import strict_json

from .calls import Call

_MARKS = re.compile(r"[ ,./\-_*^]")
Accepted = tuple[str, Mapping[str, Sequence[Any]]]
"""The name of a function, and for each argument the values that are right."""


def accepted_in(calls: Any) -> list[Accepted] | None:
    """Gold calls in this form; None where they are in another."""
    given = calls if isinstance(calls, list | tuple) else [calls]
    if not given or not all(isinstance(call, Mapping) and len(call) == 1 for call in given):
        return None
    pairs = [next(iter(call.items())) for call in given]
    # the words of other forms are no names
    if any(name in ("arguments", "parameters", "function", "calls") for name, _ in pairs):
        return None
    if not all(isinstance(of, Mapping) and all(isinstance(values, list | tuple) for values in of.values()) for _, of in pairs):
        return None
    return [(str(name), of) for name, of in pairs]


def canonical(accepted: Accepted) -> Call:
    """The first accepted call, without what may be left out."""
    name, arguments = accepted
    return Call(name, _first_of_each(arguments))


def _first_of_each(arguments: Mapping[str, Any]) -> dict[str, Any]:
    listed = {key: _listed(values) for key, values in arguments.items()}
    return {key: _chosen(values[0]) for key, values in listed.items() if not _optional(values)}


def _optional(values: Sequence[Any]) -> bool:
    return not values or "" in values


def _chosen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _first_of_each(value)
    return [_chosen(x) for x in value] if isinstance(value, list | tuple) else value


def fits(call: Call, accepted: Accepted) -> bool:
    """Whether a call, its arguments by name, is one of those that are accepted."""
    name, arguments = accepted
    return call.name == name and _object_fits(call.arguments, arguments)


def all_fit(calls: Sequence[Call], accepted: Sequence[Accepted], ordered: bool) -> bool:
    """Whether each call is accepted as another one of the gold calls, and none of those is left."""
    if len(calls) != len(accepted):
        return False
    if ordered:
        return all(map(fits, calls, accepted))
    # a matching by augmenting paths: one call may fit several of the gold ones
    taken: dict[int, int] = {}

    def place(i: int, seen: set[int]) -> bool:
        for j, gold in enumerate(accepted):
            if j not in seen and fits(calls[i], gold):
                seen.add(j)
                if j not in taken or place(taken[j], seen):
                    taken[j] = i
                    return True
        return False

    return all(place(i, set()) for i in range(len(calls)))


def _object_fits(said: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    """Whether an object has accepted values alone, and all that may not be left out."""
    if any(key not in accepted for key in said):
        return False
    listed = {key: _listed(values) for key, values in accepted.items()}
    return all(
        any(_fits(said[key], value) for value in values or ([], "", None)) if key in said else _optional(values)
        for key, values in listed.items()
    )


def _fits(said: Any, value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(said, Mapping) and _object_fits(said, value)
    if isinstance(value, list | tuple):
        return isinstance(said, list | tuple) and len(said) == len(value) and all(map(_fits, said, value))
    if isinstance(value, str):
        return isinstance(said, str) and _plain(said) == _plain(value)
    return strict_json.equal(said, value)


def _plain(text: str) -> str:
    return _MARKS.sub("", text).lower().replace("'", '"')


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else [values]
