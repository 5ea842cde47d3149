"""Values sent between a program and its checker.

Only plain built-in values are sent: None, bool, int, float, complex, str, bytes, bytearray, range, list, tuple, dict, set,
frozenset; and those of the standard library that are a number or a time: Decimal, Fraction, date, time, datetime, timedelta. They
arrive as exactly these types, with the same contents, shared parts and cycles. For other objects, `foreign` gives a name, by which
`known` finds them on the other side. Messages are JSON behind their length in four bytes: reading them runs no code.

    [1, 2]  [[1, 2]]      (1, 2)  {"t": [1, 2]}       {1: 2}  {"d": [[1, 2]]}      a list seen before  {"r": 0}
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

LONGEST = 1 << 25
"""Bytes of a message."""
_SMALL = 1 << 63
_MUTABLE = (list, dict, set, bytearray)
Seen = dict[int, tuple[int, Any]]
"""Mutable values by id(), with their numbers. The values are held too, since the id of a freed object is used again."""
_BASES = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)


class Broken(Exception):
    """The other side broke the protocol."""


class Closed(Exception):
    """The other side is gone."""


class Wire:
    """Messages over a descriptor."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def send(self, message: Any) -> None:
        data = json.dumps(message).encode()
        if len(data) > LONGEST:
            raise ValueError(f"a value of over {LONGEST >> 20} MiB cannot be sent")
        unsent = memoryview(struct.pack("<I", len(data)) + data)
        while unsent:
            try:
                unsent = unsent[os.write(self.descriptor, unsent) :]
            except OSError:
                raise Closed from None

    def receive(self) -> Any:
        (length,) = struct.unpack("<I", self._read(4))
        if length > LONGEST:
            raise Broken(f"a message of over {LONGEST >> 20} MiB")
        try:
            return json.loads(self._read(length))
        except (ValueError, RecursionError):
            raise Broken("a message that cannot be read") from None

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            try:
                part = os.read(self.descriptor, min(length, 1 << 20))
            except OSError:
                part = b""
            if not part:
                raise Closed
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def encode(value: Any, foreign: Callable[[Any], Any], seen: Seen | None = None) -> Any:
    """A value as JSON. seen: the mutable values that were sent before, which grows; they are sent as their numbers."""
    return _Encoder(foreign, {} if seen is None else seen)(value)


def numbered(values: list[Any]) -> Seen:
    return {id(value): (number, value) for number, value in enumerate(values)}


class _Encoder:
    def __init__(self, foreign: Callable[[Any], Any], seen: Seen):
        self.foreign, self.seen = foreign, seen

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            # decimal numbers in JSON are limited in digits and slow to parse
            return value if -_SMALL < value < _SMALL else {"i": hex(value)}
        if kind is str:
            return value if value.isascii() or _is_text(value) else {"s": value.encode("utf-8", "surrogatepass").hex()}
        if kind in _MUTABLE:
            if id(value) in self.seen:
                return {"r": self.seen[id(value)][0]}
            # numbered before its items are encoded, so that a cycle finds it
            self.seen[id(value)] = len(self.seen), value
        return self.parts(kind, value)

    def parts(self, kind: type, value: Any) -> Any:
        if kind is list:
            return [self(item) for item in value]
        if kind is dict:
            return {"d": [[self(key), self(item)] for key, item in value.items()]}
        if kind in _SEVERAL:
            return {_SEVERAL[kind]: [self(item) for item in value]}
        if kind is bytes or kind is bytearray:
            return {"b" if kind is bytes else "y": value.hex()}
        if kind is complex:
            return {"z": [value.real, value.imag]}
        if kind is range:
            return {"g": [self(value.start), self(value.stop), self(value.step)]}
        for tag, (module, name, write, _) in _STANDARD.items():
            # where its module is not loaded, it is no object of its class
            if kind is getattr(sys.modules.get(module), name, None) and _is_fixed(value):
                return {tag: self(write(value))}
        base = next((base for base in _BASES if issubclass(kind, base)), None)
        return self.foreign(value) if base is None else self(_AS_BASE[base](value))


def _is_fixed(value: Any) -> bool:
    """Whether a time has no zone, or one that is an offset: others have rules of their own."""
    zone = getattr(value, "tzinfo", None)
    return zone is None or type(zone) is getattr(sys.modules.get("datetime"), "timezone", None)


_STANDARD: dict[str, tuple[str, str, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "decimal": ("decimal", "Decimal", str, lambda kind, text: kind(str.__str__(text))),
    "fraction": (
        "fractions",
        "Fraction",
        lambda x: (x.numerator, x.denominator),
        lambda kind, parts: kind(*map(int.__int__, parts)),
    ),
    "date": ("datetime", "date", lambda x: x.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "time": ("datetime", "time", lambda x: x.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "datetime": ("datetime", "datetime", lambda x: x.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    "timedelta": (
        "datetime",
        "timedelta",
        lambda x: (x.days, x.seconds, x.microseconds),
        lambda kind, parts: kind(*map(int.__int__, parts)),
    ),
}
"""By tag: the module and the name of a class, how a value of it is written in plain values, and how it is made of them."""


def _made(tag: str, content: Any) -> Any:
    module, name, _, make = _STANDARD[tag]
    return make(getattr(importlib.import_module(module), name), content)


_SEVERAL: dict[type, str] = {tuple: "t", set: "e", frozenset: "f"}
_AS_BASE: dict[type, Callable[[Any], Any]] = {
    int: int.__int__, float: float.__float__, complex: lambda z: complex(z.real, z.imag), str: str.__str__,
    bytes: lambda b: bytes(memoryview(b)), bytearray: lambda b: bytearray(memoryview(b)), list: lambda x: list(list.__iter__(x)),
    tuple: lambda x: tuple(tuple.__iter__(x)), dict: lambda x: dict(dict.items(x)), set: lambda x: set(set.__iter__(x)),
    frozenset: lambda x: frozenset(frozenset.__iter__(x)),
}  # fmt: skip
"""An object of a subclass (a Counter, a named tuple, a member of an IntEnum) is sent as its built-in base."""


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode(data: Any, known: Callable[[str, Any], Any], values: list[Any] | None = None) -> Any:
    """The value of some JSON. made: mutable values by number, which grows. Raises Broken on anything else."""
    try:
        return _Decoder(known, [] if values is None else values)(data)
    except (TypeError, ValueError, KeyError, IndexError, RecursionError, AttributeError, ArithmeticError):
        raise Broken("no value") from None


class _Decoder:
    def __init__(self, known: Callable[[str, Any], Any], made: list[Any]):
        self.known, self.made = known, made

    def __call__(self, data: Any) -> Any:
        if type(data) is list:
            return self.fill([], list.extend, data)
        if type(data) is not dict:
            return data
        ((tag, content),) = data.items()
        if tag in _STANDARD:
            return _made(tag, self(content))
        read = _READ.get(tag)
        return read(self, content) if read else self.known(tag, content)

    def fill(self, value: Any, add: Callable[[Any, Any], Any], items: list[Any]) -> Any:
        self.made.append(value)
        add(value, [self(item) for item in items])
        return value

    def pairs(self, items: list[Any]) -> Any:
        value: dict[Any, Any] = {}
        self.made.append(value)
        for key, item in items:
            # key first, as they were numbered in this order
            decoded = self(key)
            value[decoded] = self(item)
        return value

    def bytearray(self, content: str) -> bytearray:
        self.made.append(bytearray.fromhex(content))
        return self.made[-1]

    def earlier(self, number: int) -> Any:
        # a negative index would reach values from the end
        if type(number) is not int or number < 0:
            raise ValueError(number)
        return self.made[number]


_READ: dict[str, Callable[[_Decoder, Any], Any]] = {
    "i": lambda d, x: int(x, 16), "s": lambda d, x: bytes.fromhex(x).decode("utf-8", "surrogatepass"),
    "b": lambda d, x: bytes.fromhex(x), "y": _Decoder.bytearray, "z": lambda d, x: complex(float(x[0]), float(x[1])),
    "g": lambda d, x: range(*(d(part) for part in x)),
    "t": lambda d, x: tuple([d(item) for item in x]), "f": lambda d, x: frozenset([d(item) for item in x]),
    "e": lambda d, x: d.fill(set(), set.update, x), "d": _Decoder.pairs, "r": _Decoder.earlier,
}  # fmt: skip


def contents(value: Any, encoder: Callable[[Any], Any]) -> Any:
    """The contents of a mutable value, from which `become` makes another one equal to it."""
    if type(value) is dict:
        return [[encoder(key), encoder(item)] for key, item in value.items()]
    return value.hex() if type(value) is bytearray else [encoder(item) for item in value]


def become(value: Any, content: Any, decoder: Callable[[Any], Any]) -> None:
    """Replace the contents of a mutable value."""
    new: Any
    if type(value) is dict:
        new = [(decoder(key), decoder(item)) for key, item in content]
    else:
        new = bytearray.fromhex(content) if type(value) is bytearray else [decoder(item) for item in content]
    value.clear()
    (value.extend if type(value) in (list, bytearray) else value.update)(new)
