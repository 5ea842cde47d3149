"""Parts: functions whose keyword-only arguments are hyperparameters.

Calling a part binds them, so every recipe prints as its formula, saves as JSON, loads back, and refuses an unknown name.

    @credit
    def scale(a, batch, run, *, by=2.0): return a * by

    scale(by=3.0)          a bound part: prints `scale(by=3.0)`, and runs as part(a, batch, run)

A part may wrap another part of its slot: `@rollout(wraps="inner")` names the hyperparameter that holds the wrapped part. `inner`
and `innermost` return the wrapped parts; `with_innermost` replaces the part below all wrappers and keeps every wrapper.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self

from rewardlab.errors import RewardlabError
from rewardlab.settings.hyperparameters import NotCalled, check_names, check_settings, hyperparameters, refuse_positional
from rewardlab.settings.options import PartOptions, call_signature, checked, describe_decorator, plainly
from rewardlab.settings.saving import plain, reduced, show, tuples


class Part:
    """A function with its hyperparameters bound. Each slot of a recipe is a subclass, with its operators.

    bound: hyperparameters that were set, by name; the others have their defaults.  options: those given to the decorator; each slot
    declares which it accepts in `option_type`.
    """

    slot: ClassVar[str] = "part"
    option_type: ClassVar[type[PartOptions]] = PartOptions
    options: PartOptions

    def __init__(self, function: Callable, bound: dict[str, Any] | None = None, options: Any = None):
        self.function = function
        # tuples, so that a part loaded from JSON equals the part that was saved, and nobody can change its settings
        self.bound = {k: tuples(v) for k, v in (bound or {}).items()}
        self.options = self.option_type() if options is None else options
        # `help(part)` then shows the function's text, and not that of the class
        self.__doc__ = function.__doc__

    @classmethod
    def check_function(cls, function: Callable, options: Any) -> None:
        """Raise RewardlabError if a function cannot be called as parts of this slot are."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """All hyperparameters, bound or default."""
        return {**hyperparameters(self.function), **self.bound}

    @property
    def of(self) -> tuple[Part, ...]:
        """The parts this one is made of: parts among its hyperparameters, or the operands of an expression."""
        return tuple(_parts(self.settings.values()))

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that the engine must compute before this part runs."""
        # dict.fromkeys drops repeated names and keeps their order, which a set would not
        return tuple(dict.fromkeys((*self.options.needs, *(n for part in self.of for n in part.needs))))

    @property
    def inner(self) -> Part | None:
        """The part that this one wraps; None if it wraps none."""
        return self.settings[self.options.wraps] if self.options.wraps else None

    @property
    def innermost(self) -> Part:
        """The part below all wrappers, which is the part itself if it wraps none."""
        return self if self.inner is None else self.inner.innermost

    def walk(self) -> Iterator[Part]:
        yield self
        for part in self.of:
            yield from part.walk()

    def contains(self, other: Part) -> bool:
        return any(part == other for part in self.walk())

    def but(self, **settings: Any) -> Self:
        """This part with some hyperparameters changed."""
        check_settings(self.function, settings)
        # copied, not constructed anew: subclasses hold more than function, bound and options (operands, for one)
        changed = copy.copy(self)
        changed.bound = self.bound | {k: tuples(v) for k, v in settings.items()}
        # the copy took along the cached `settings` of the original
        changed.__dict__.pop("settings", None)
        return changed

    def but_innermost(self, **settings: Any) -> Part:
        """The same wrappers around the innermost part, with some of its hyperparameters changed."""
        part = self.innermost
        if unknown_names := [name for name in settings if name not in part.settings]:
            raise RewardlabError(f"the {self.slot} {part} has no setting {' or '.join(unknown_names)}")
        return self.with_innermost(part.but(**settings))

    def with_innermost(self, part: Part) -> Part:
        """The same wrappers around another part."""
        if self.options.wraps is None:
            return part
        return self.but(**{self.options.wraps: self.settings[self.options.wraps].with_innermost(part)})

    def replace_innermost(self, old: PartFactory, new: PartFactory, **settings: Any) -> Part:
        """Replace the innermost part, which must be an `old` one, by a `new` one with the same settings; the wrappers stay.

        Raises RewardlabError if the innermost part is not `old`, or has a changed setting that `new` does not have.
        """
        part = self.innermost
        if part.function is not old.function:
            raise RewardlabError(f"{new.__name__} replaces the {self.slot} {old.__name__}, and this one is {part}")
        known, defaults = hyperparameters(new.function), hyperparameters(part.function)
        # a setting at its default can be dropped: nobody chose it
        if lost := [k for k, v in part.settings.items() if k not in known and v != defaults[k]]:
            raise RewardlabError(f"{new.__name__} has no setting {' or '.join(lost)}, so it cannot replace the {self.slot} {part}")
        shared = {k: v for k, v in part.settings.items() if k in known}
        return self.with_innermost(new(**shared | settings))

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs, **self.settings)

    def __str__(self) -> str:
        defaults = hyperparameters(self.function)
        # only what differs from the default is shown, in the order of the signature
        shown = (f"{k}={show(self.bound[k])}" for k, v in defaults.items() if k in self.bound and self.bound[k] != v)
        return f"{self.name}({', '.join(shown)})"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, Any]:
        """What equality compares: the function and all its settings. Binding a hyperparameter to its default changes nothing."""
        return f"{self.function.__module__}:{self.function.__qualname__}", self.settings

    def __hash__(self) -> int:
        # settings may hold dicts, which have no hash; the printed form always does
        return hash(str(self))

    def __copy__(self) -> Self:
        # as Python would without `__reduce__`, which finds the function by its name
        vars(same := type(self).__new__(type(self))).update(vars(self))
        return same

    def __deepcopy__(self, memo: Any) -> Self:
        # nobody can change its settings
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def to_json(self) -> dict[str, Any]:
        return {"part": saved_name(self.slot, self.function), "with": {k: plain(v) for k, v in self.bound.items()}}


class Expression(Part):
    """Parts joined by an operator.

    symbol: printed between them.  rank: precedence of the operator; an operand of lower rank is printed in brackets.
    """

    symbol: ClassVar[str] = ""
    rank: ClassVar[int] = 0

    def __init__(self, *of: Any):
        self._of = of
        self.bound, self.options = {}, self.option_type()

    @property
    def settings(self) -> dict[str, Any]:  # type: ignore[override]
        """An expression has no hyperparameters of its own."""
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
        return f"({x})" if isinstance(x, Expression) and x.rank < self.rank else show(x)

    def to_json(self) -> dict[str, Any]:
        return {"expression": f"{self.slot}:{type(self).__name__}", "of": [plain(x) for x in self._of]}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._of

    @classmethod
    def join(cls, *of: Any) -> Self:
        """Join, flattening operands that are already joined by this operator."""
        for x in of:
            if getattr(x, "slot", None) != cls.slot:
                raise RewardlabError(f"cannot join {x!r} by {cls.symbol}: it is not a {cls.slot} part (forgot to call it?)")
        # (a + b) + c becomes one sum of three, so it prints and saves without nested brackets
        return cls(*(y for x in of for y in (x._of if type(x) is cls else (x,))))


class PartFactory(NotCalled):
    """The result of decorating a function: call it with hyperparameters to get a part."""

    def __init__(self, function: Callable, make: type[Part], options: Any):
        # keeps the name and module of the function
        functools.update_wrapper(self, function)
        self.__name__: str = function.__name__
        self.function, self.make, self.options = function, make, options
        self.__signature__ = call_signature(function, self.operands())
        # help() of an object shows its docstring alone
        self.__doc__ = f"{self.__name__}{plainly(self.__signature__)}\n\n{inspect.getdoc(function) or ''}"

    def operands(self) -> tuple[str, ...]:
        """The names of the function's arguments that are given in the call: rewards to operators."""
        return ()

    def __call__(self, *given: Any, **bound: Any) -> Any:
        if given:
            refuse_positional(self.__name__, given[0])
        # checked here, so that a wrong name fails where the recipe is written, not in the middle of a run
        self.check(bound)
        return self.make(self.function, bound, self.options)

    def check(self, bound: dict[str, Any]) -> None:
        """Raise RewardlabError for a hyperparameter that is unknown, outside its domain, or has neither value nor default."""
        check_settings(self.function, bound)
        if missing := [k for k, v in hyperparameters(self.function).items() if v is inspect.Parameter.empty and k not in bound]:
            raise RewardlabError(f"{self.function.__name__} needs {', '.join(missing)}")
        if check := getattr(self.options, "check", None):
            check(**{**hyperparameters(self.function), **bound})

    def __repr__(self) -> str:
        return f"<{self.make.slot} {self.function.__name__}>"


def saved_name(slot: str, function: Callable) -> str:
    """The name by which `registry.load_part` finds a part again: `credit:center`, `credit:dapo/overlong`, `credit:my.module:mine`.

    Shared parts are found by slot and name, whatever file they are in.
    """
    module, name = function.__module__, function.__qualname__
    # two methods may have a part of the same name, so the name of their file goes before it
    if module.startswith("rewardlab.methods."):
        return f"{slot}:{module.rpartition('.')[2]}/{name}"
    return f"{slot}:{name}" if module.startswith("rewardlab.") else f"{slot}:{module}:{name}"


def decorator(make: type[Part], factory: type[PartFactory] = PartFactory, about: str = "") -> Callable:
    """The decorator that makes parts of a slot from functions; used bare, or with the options that `make.option_type` lists.

    about: its docstring; those of the options follow. An option that is unknown or of the wrong type raises RewardlabError when the
    module that defines the function is imported.
    """

    def decorate(function: Callable | None = None, **options: Any) -> Any:
        if function is not None and not callable(function):
            raise RewardlabError(f"@{make.__name__.lower()} takes options by name, such as over=..., not {function!r}")
        if function is None:
            # used with options: Python calls the result with the function
            return lambda f: decorate(f, **options)
        typed = checked(make.option_type, make.__name__.lower(), function, options)
        make.check_function(function, typed)
        if named := [*filter(None, [typed.wraps]), *typed.first]:
            check_names(function, named)
        return factory(function, make, typed)

    describe_decorator(
        decorate, make.__name__.lower(), about or f"Turn a function into a part:\n\n{make.__doc__}", make.option_type
    )
    return decorate


def _parts(values: Iterable[Any]) -> Iterator[Part]:
    """The parts among values, also inside tuples and dicts."""
    for value in values:
        if isinstance(value, Part):
            yield value
        elif isinstance(value, tuple | dict):
            yield from _parts(value.values() if isinstance(value, dict) else value)
