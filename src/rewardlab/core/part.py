"""Parts: functions whose keyword-only arguments are hyperparameters.

Calling a part binds them, so every recipe prints as its formula, saves as JSON, loads back, and refuses an unknown name.

    @credit
    def scale(a, batch, run, *, by=2.0): return a * by

    scale(by=3.0)          a bound part: prints `scale(by=3.0)`, and runs as part(a, batch, run)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self

from rewardlab.errors import RewardlabError, unknown


class Part:
    """A function with its hyperparameters bound. Subclasses are the slots of a recipe, with their algebra."""

    slot: ClassVar[str] = "part"

    def __init__(self, function: Callable, given: dict[str, Any] | None = None, **traits: Any):
        self.function = function
        self.given = {k: _tuples(v) for k, v in (given or {}).items()}
        self.traits = traits

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        return hyperparameters(self.function) | self.given

    @property
    def of(self) -> tuple[Part, ...]:
        """The parts this one is made of: parts given as hyperparameters, or the operands of an expression."""
        return tuple(_parts(self.settings.values()))

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that the engine must compute before this part runs."""
        own = tuple(self.traits.get("needs", ()))
        return tuple(dict.fromkeys((*own, *(n for part in self.of for n in part.needs))))

    def walk(self) -> Iterator[Part]:
        yield self
        for part in self.of:
            yield from part.walk()

    def contains(self, other: Part) -> bool:
        return any(part == other for part in self.walk())

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs, **self.settings)

    def __str__(self) -> str:
        defaults = hyperparameters(self.function)
        shown = (f"{k}={_show(self.given[k])}" for k, v in defaults.items() if k in self.given and self.given[k] != v)
        return f"{self.name}({', '.join(shown)})"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, Any]:
        """A part is what it runs, whether a setting was given or left at its default."""
        return f"{self.function.__module__}:{self.function.__qualname__}", self.settings

    def __hash__(self) -> int:
        return hash(str(self))

    def to_json(self) -> dict[str, Any]:
        return {"part": saved_name(self.slot, self.function), "with": {k: _plain(v) for k, v in self.given.items()}}


class Expression(Part):
    """Parts joined by an operator. `join` shows it, `rank` decides on brackets."""

    symbol: ClassVar[str] = ""
    rank: ClassVar[int] = 0

    def __init__(self, *of: Any):
        self._of = of
        self.given, self.traits = {}, {}

    @property
    def settings(self) -> dict[str, Any]:  # type: ignore[override]
        """None of its own."""
        return {}

    @property
    def of(self) -> tuple[Part, ...]:
        return tuple(x for x in self._of if isinstance(x, Part))

    @property
    def name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f" {self.symbol} ".join(self._bracket(x) for x in self._of)

    __repr__ = __str__

    def _identity(self) -> tuple[Any, Any]:
        return type(self), self._of

    def _bracket(self, x: Any) -> str:
        return f"({x})" if isinstance(x, Expression) and x.rank < self.rank else _show(x)

    def to_json(self) -> dict[str, Any]:
        return {"expression": f"{self.slot}:{type(self).__name__}", "of": [_plain(x) for x in self._of]}

    @classmethod
    def join(cls, *of: Any) -> Self:
        """Join, flattening operands that are already joined by this operator."""
        for x in of:
            if getattr(x, "slot", None) != cls.slot:
                raise RewardlabError(f"cannot join {x!r} by {cls.symbol}: it is no {cls.slot} part (forgot to call it?)")
        return cls(*(y for x in of for y in (x._of if type(x) is cls else (x,))))


class PartFactory:
    """What a decorator leaves in place of a function: call it with hyperparameters to get a part."""

    def __init__(self, function: Callable, make: type[Part], traits: dict[str, Any]):
        functools.update_wrapper(self, function)
        self.function, self.make, self.traits = function, make, traits

    def __call__(self, **given: Any) -> Any:
        known = hyperparameters(self.function)
        for name in given:
            if name not in known:
                raise unknown(f"hyperparameter of {self.function.__name__}", name, known)
        missing = [k for k, v in known.items() if v is inspect.Parameter.empty and k not in given]
        if missing:
            raise RewardlabError(f"{self.function.__name__} needs {', '.join(missing)}")
        return self.make(self.function, given, **self.traits)

    def __repr__(self) -> str:
        return f"<{self.make.slot} {self.function.__name__}>"


def hyperparameters(function: Callable) -> dict[str, Any]:
    """Keyword-only arguments and their defaults (`inspect.Parameter.empty` where one must be given)."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def saved_name(slot: str, function: Callable) -> str:
    """The name by which `registry.load_part` finds a part again: `credit:center`, `credit:dapo/overlong`, `credit:my.module:mine`.

    Shared parts are found by slot and name, whatever file they are in.
    """
    module, name = function.__module__, function.__qualname__
    if module.startswith("rewardlab.methods."):
        return f"{slot}:{module.rpartition('.')[2]}/{name}"
    return f"{slot}:{name}" if module.startswith("rewardlab.") else f"{slot}:{module}:{name}"


def decorator(make: type[Part], **defaults: Any) -> Callable:
    """A decorator that turns functions into templates of a slot; usable bare or with traits."""

    def decorate(function: Callable | None = None, **traits: Any) -> Any:
        if function is None:
            return lambda f: PartFactory(f, make, defaults | traits)
        return PartFactory(function, make, defaults | traits)

    return decorate


def _parts(values: Iterable[Any]) -> Iterator[Part]:
    """The parts among values, also inside tuples and dicts."""
    for value in values:
        if isinstance(value, Part):
            yield value
        elif isinstance(value, tuple | dict):
            yield from _parts(value.values() if isinstance(value, dict) else value)


def _tuples(value: Any) -> Any:
    """Lists as tuples: a part that comes back from JSON is the part that went in."""
    if isinstance(value, dict):
        return {k: _tuples(v) for k, v in value.items()}
    return tuple(_tuples(x) for x in value) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise RewardlabError(f"a hyperparameter must be plain data or a part, not {type(value).__name__}")


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, Part) else repr(value)
