"""A user's function as a tool: what it must be, its schema, and how it is called."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rewardlab.core.part import PartFactory
from rewardlab.envs.tool_arguments import as_hinted, in_json
from rewardlab.envs.tool_docstrings import in_google
from rewardlab.errors import RewardlabError
from rewardlab.util.background import wait_for
from rewardlab.verifiers.calls.calls import Call, tools_from

NEEDED = (
    "A tool has type hints (str, int, float, bool, list, tuple, set, dict, Sequence, Mapping, Literal, an Enum, date, datetime, "
    "time, Path, and unions of these; in place of a class of your own, a dict), and a docstring that says what it does and what "
    "each argument is (`name: what it is` under Args:, or as NumPy or Sphinx write it)"
)


class Tool:
    """A function that the policy may call.  schema: as chat templates take it, {"type": "function", "function": ...}.

    It is a function, async or not, a method of an object, an object that can be called, or one of these within functools' partial
    or lru_cache. A function has its own name, anything else that of the file; of desk.lookup that is lookup.
    """

    def __init__(self, function: Callable, path: Path, name: str):
        import jsonschema

        self.function, self.path, self.written = function, path, name
        self.name = (
            function.__name__ if inspect.isfunction(function) and function.__name__.isidentifier() else name.rpartition(".")[2]
        )
        inner = _within(function)
        if lacking := _unfit(function, inner) or _lacks(inner, _signature(function)):
            raise self._refused(lacking)
        self.signature = _signature(function)
        self.hints, self.schema = self._described(inner)
        # made here, since its import would count among the seconds of the first call
        self.check = jsonschema.Draft202012Validator(_with_null(self.schema["function"]["parameters"]))
        try:
            self.check.check_schema(self.check.schema)
        except jsonschema.SchemaError as problem:
            raise self._refused(f"no JSON holds its argument {problem.absolute_path[1]}") from None

    def __call__(self, call: Call) -> Any:
        """What it returns. Raises TypeError where the arguments do not fit, and whatever the function raises."""
        given = call.bound(tools_from([self.schema]), defaults=False).arguments
        # before it runs, so that a TypeError within it is not taken for wrong arguments
        self.signature.bind(**given)
        _check_types(given, self.check)
        made = self.function(**{name: _converted(name, value, self.hints[name]) for name, value in given.items()})
        # of asynchronous tools all run in one loop, to which their clients belong
        return wait_for(made, "tools") if inspect.iscoroutine(made) else made

    def _described(self, inner: Callable) -> tuple[dict[str, Any], dict[str, Any]]:
        """The hints of the arguments, and the JSON schema. Raises RewardlabError that says what hints or docstring lack."""
        from transformers.utils import get_json_schema

        try:
            hints = typing.get_type_hints(inner)
            named = {name: hint for name, hint in hints.items() if name in (*self.signature.parameters, "return")}
            return named, get_json_schema(_face(self.name, in_google(_doc(inner)), self.signature, named))
        except Exception as problem:
            # some of its errors hold the words and the hint apart
            says = "".join(map(str, problem.args)).replace(f"{inner.__module__}.", "")
            # its first sentence: the others advise what cannot be done here
            raise self._refused(re.split(r"[.!] |[.!]?$", says, maxsplit=1)[0]) from problem

    def _refused(self, lacking: str) -> RewardlabError:
        return RewardlabError(f"{self.written} of {self.path} cannot be a tool: {lacking}. {NEEDED}")


def _within(function: Any) -> Any:
    """The function or method that has the hints and the docstring: within a partial, or that by which an object is called."""
    while isinstance(function, partial):
        function = function.func
    plain = inspect.isroutine(function) or inspect.isclass(function) or hasattr(function, "__wrapped__")
    return function if plain else function.__call__


def _unfit(function: Any, inner: Any) -> str:
    """Why something that can be called is none of what a tool may be; "" for nothing."""
    if inspect.isclass(inner):
        return f"it is a class: write a function, or give an object's method ({inner.__name__.lower()} = {inner.__name__}().METHOD)"
    if isinstance(function, PartFactory):
        return f"it is one of rewardlab's parts ({function.make.slot}), and no tool"
    if hasattr(inner, "cache_info") and inspect.iscoroutinefunction(inspect.unwrap(inner)):
        return "it is async and in a cache, which would give the same coroutine out twice: keep results in a dictionary of your own"
    try:
        _signature(function)
    except ValueError:
        return "it has no signature, as functions written in C: write a function around it"
    return ""


def _signature(function: Any) -> inspect.Signature:
    """The arguments that are left to give: not those that a partial gives."""
    found, given = inspect.signature(function), set[str]()
    while isinstance(function, partial):
        given, function = given | function.keywords.keys(), function.func
    return found.replace(parameters=[p for name, p in found.parameters.items() if name not in given])


def _lacks(inner: Any, signature: inspect.Signature) -> str:
    """What keeps a function from being a tool that is seen from its signature; "" for nothing."""
    arguments = signature.parameters.values()
    if gathered := [str(p) for p in arguments if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]:
        none = gathered[0].partition(":")[0]
        return f"its arguments are given by name, and {none} names none (a decorator keeps names by functools.wraps)"
    if by_place := [p.name for p in arguments if p.kind is p.POSITIONAL_ONLY]:
        return f"its arguments are given by name, and {by_place[0]} comes before a /"
    if bare := [p.name for p in arguments if p.annotation is p.empty]:
        if bare[0] in ("self", "cls"):
            return "it is a method without its object: name that of an object in the file (find = Index().find)"
        return f"the argument {bare[0]} has no type hint"
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        return "it yields, and a tool returns its result"
    return "" if _doc(inner) else "it has no docstring"


def _doc(inner: Any) -> str:
    """The docstring of a function; of an object that can be called perhaps that of its class."""
    own = inner.__doc__ or (type(inner.__self__).__doc__ if getattr(inner, "__name__", "") == "__call__" else "")
    return inspect.cleandoc(own or "")


def _face(name: str, doc: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> Callable:
    """A plain function of this name, docstring and signature, with hints for what a call holds."""

    def face() -> None: ...

    face.__name__, face.__doc__ = name, doc
    face.__annotations__ = {name: in_json(hint) for name, hint in hints.items()}
    face.__signature__ = signature  # type: ignore[attr-defined]
    return face


def _converted(name: str, value: Any, hint: Any) -> Any:
    try:
        return as_hinted(value, hint)
    except (ValueError, TypeError) as problem:
        raise TypeError(f"{name}: {problem}") from None


# ---- whether a call's arguments are of their types -----------------------------------------------------------------------


def _with_null(schema: Any) -> Any:
    """The schema as it is checked. `nullable`, by which models are told of Optional, is no word of JSON Schema."""
    if isinstance(schema, list):
        return [_with_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _with_null(value) for name, value in schema.items()}
    # True: an argument may be called nullable
    if inner.get("nullable") is True:
        types = inner.get("type", ())
        more = {"type": [*([types] if isinstance(types, str) else types), "null"], "enum": [*inner.get("enum", ()), None]}
        more["anyOf"] = [*inner.get("anyOf", ()), {"type": "null"}]
        inner |= {name: value for name, value in more.items() if name in inner}
    return inner


def _check_types(given: Mapping[str, Any], check: Any) -> None:
    """Raise TypeError where an argument is not of the type that its hint says.  check: the tool's validator of jsonschema."""
    from jsonschema.exceptions import best_match

    if problem := best_match(check.iter_errors(given)):
        raise TypeError(f"{'.'.join(map(str, problem.absolute_path)) or 'the arguments'}: {problem.message[:200]}")
