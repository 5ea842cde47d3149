"""Domains: which values a setting may have.

A setting's domain is declared once, in the annotation of whatever uses its value: a part, a task, a field of `Update`.

    def independent(problems, run, *, n: PositiveInt = 8, temperature: NonNegativeFloat = 1.0): ...

A plain `int`, `float`, `bool`, `str` or `Literal` is a domain too; NaN and infinity are not numbers in any of them. A setting
with another annotation, or none, takes any value.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from rewardlab.errors import RewardlabError, unknown

# ---- Values that are written as text, on the command line or in the options of a task --------------------------------

POWER_OF_TEN = re.compile(r"-?\d+[eE]\+?\d{1,3}")


def parse_value(text: str) -> Any:
    """A number, true, false, null, or a [list] of them, as JSON writes it; else the text itself.

    1e3 is the whole number 1000: numbers of steps and tokens are written so.
    """
    if POWER_OF_TEN.fullmatch(text):
        digits, power = text.lower().split("e")
        return int(digits) * 10 ** int(power)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_options(items: Iterable[str], known: Collection[str], of: str, plain: Collection[str] = ()) -> dict[str, Any]:
    """KEY=VALUE texts as a dict.  of: whose options they are, in errors.  plain: keys whose values are texts, even 8."""
    options: dict[str, Any] = {}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in known:
            raise unknown(f"option of {of}", key, known)
        if not equals or not value:
            raise RewardlabError(f"the option {key!r} of {of} has no value; write {key}=VALUE")
        options[key] = value if key in plain else parse_value(value)
    return options


class OutOfDomain(RewardlabError):
    """A value outside the domain of its setting."""

    def __init__(self, name: str, says: str, value: Any):
        super().__init__(f"{name} must be {says}, not {value!r}")
        self.name, self.says, self.value = name, says, value


@dataclass(frozen=True)
class Domain:
    """The values that a setting may have.

    says: completes the sentence "NAME must be ...".  holds: whether a value is in the domain.  read: converts the text on the
    command line to a value (the list of texts, for a flag that may be repeated).
    """

    says: str
    holds: Callable[[Any], bool]
    read: Callable[[Any], Any] = str

    def check(self, name: str, value: Any) -> Any:
        """The value, or OutOfDomain."""
        if not self.holds(value):
            raise OutOfDomain(name, self.says, value)
        return value


class Setting(NamedTuple):
    """What an annotation says: the plain type (None: any other), its domain (None: any value), and whether None is allowed."""

    kind: type | None = None
    domain: Domain | None = None
    optional: bool = False


def _is_identifier(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def one_of(*names: str) -> Domain:
    said = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
    return Domain(said, lambda value: value in names)


def _whole(value: Any) -> bool:
    # bool is a subclass of int in Python, but `steps=True` is a mistake
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    # a whole number may be too large for a float, and math.isfinite would raise
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _float(text: str) -> float | str:
    """A number of a list; a text that is none stays one, which no domain of numbers has."""
    try:
        return float(text)
    except ValueError:
        return text


def whole(says: str, holds: Callable[[int], bool]) -> Domain:
    """A domain of whole numbers."""
    return Domain(says, lambda value: _whole(value) and holds(value), parse_value)


def number(says: str, holds: Callable[[float], bool]) -> Domain:
    """A domain of numbers."""
    return Domain(says, lambda value: _number(value) and holds(value), parse_value)


WHOLE = whole("a whole number", lambda value: True)
POSITIVE = whole("a whole number above 0", lambda value: value > 0)
COUNT = whole("a whole number from 0 up", lambda value: value >= 0)
NUMBER = number("a number", lambda value: True)
ABOVE_ZERO = number("a number above 0", lambda value: value > 0)
NOT_NEGATIVE = number("a number from 0 up", lambda value: value >= 0)
SHARE = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
POSITIVE_SHARE = number("a number above 0, at most 1", lambda value: 0 < value <= 1)
AUC = number("a number from 0.5 (chance) to below 1", lambda value: 0.5 <= value < 1)
DECAY = number("a number from 0 to below 1", lambda value: 0 <= value < 1)
TEXT = Domain("text", lambda value: isinstance(value, str))
NAME = Domain("a text that is not empty", lambda value: isinstance(value, str) and value.strip() != "")
PATH = Domain("a path, which is not empty", lambda value: isinstance(value, os.PathLike) or NAME.holds(value), Path)
WORKERS = Domain(
    "ray, or ray:N for N processes", lambda value: isinstance(value, str) and bool(re.fullmatch("ray(:0*[1-9][0-9]*)?", value))
)
RATES = Domain(
    "learning rates above 0, numbers with commas between them, as 1e-6,3e-6,1e-5",
    lambda rates: bool(rates) and all(_number(rate) and rate > 0 for rate in rates),
    lambda text: tuple(_float(part) for part in text.split(",") if part.strip()),
)
KWARGS = Domain(
    'names and values, as a JSON object such as {"enable_thinking": false}',
    lambda value: isinstance(value, Mapping) and all(map(_is_identifier, value)) and _is_json(dict(value)),
    parse_value,
)
SWITCH = Domain("true or false", lambda value: isinstance(value, bool), parse_value)

PositiveInt = Annotated[int, POSITIVE]
NonNegativeInt = Annotated[int, COUNT]
PositiveFloat = Annotated[float, ABOVE_ZERO]
NonNegativeFloat = Annotated[float, NOT_NEGATIVE]
Share = Annotated[float, SHARE]
"""A share, a probability or a discount: from 0 to 1."""
PositiveShare = Annotated[float, POSITIVE_SHARE]
Auc = Annotated[float, AUC]
"""How often a scorer ranks a right reply above a wrong one."""
Decay = Annotated[float, DECAY]
"""The decay rate of a running mean: below 1, or nothing new would ever count."""

PLAIN = {int: WHOLE, float: NUMBER, str: TEXT, bool: SWITCH}
ANNOTATIONS: dict[str, Any] = {kind.__name__: kind for kind in PLAIN}
ANNOTATIONS |= {
    "PositiveInt": PositiveInt, "NonNegativeInt": NonNegativeInt, "PositiveFloat": PositiveFloat, "Share": Share, "Decay": Decay,
    "NonNegativeFloat": NonNegativeFloat, "PositiveShare": PositiveShare, "Auc": Auc,
}  # fmt: skip
"""The annotations that have a domain, as they are written; with them, a file can be described without importing it."""


def setting_of(annotation: Any) -> Setting:
    """What an annotation, evaluated, says of its setting."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        domain = next((x for x in arguments[1:] if isinstance(x, Domain)), None)
        return Setting(arguments[0], domain)
    if origin in (Union, UnionType):
        others = [x for x in arguments if x is not NoneType]
        # of a union of several types, such as int | tuple, nothing is known
        return setting_of(others[0])._replace(optional=len(others) < len(arguments)) if len(others) == 1 else Setting()
    if origin is Literal and all(isinstance(x, str) for x in arguments):
        return Setting(str, one_of(*arguments))
    return Setting(annotation, PLAIN[annotation]) if isinstance(annotation, type) and annotation in PLAIN else Setting()


@functools.cache
def settings_of(owner: Callable) -> Mapping[str, Setting]:
    """The settings of a function (its keyword-only parameters) or of a dataclass (its fields), by name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if isinstance(owner, type) else inspect.Parameter.KEYWORD_ONLY
    parameters = [p for p in inspect.signature(owner).parameters.values() if p.kind is kind]
    return MappingProxyType({p.name: setting_of(_evaluated(p.annotation, owner)) for p in parameters})


def _evaluated(annotation: Any, owner: Callable) -> Any:
    """An annotation's value: it is a string under `from __future__ import annotations`."""
    if not isinstance(annotation, str):
        return annotation
    try:
        # one by one, since a name that only a type checker knows must not hide the other annotations
        return eval(annotation, vars(sys.modules[owner.__module__]))
    except (NameError, AttributeError, SyntaxError, TypeError, KeyError):
        return None


def check_value(name: str, setting: Setting, value: Any) -> None:
    """Raise OutOfDomain unless the setting may have this value."""
    if isinstance(value, float) and not math.isfinite(value):
        raise OutOfDomain(name, (setting.domain or NUMBER).says, value)
    if setting.domain and not (value is None and setting.optional):
        setting.domain.check(name, value)


def check_values(owner: Callable, values: Mapping[str, Any], of: str = "") -> None:
    """Raise OutOfDomain for the first value outside its setting's domain; of: what the message says after the name."""
    for name, value in values.items():
        check_value(f"{name}{of}", settings_of(owner).get(name, Setting()), value)
