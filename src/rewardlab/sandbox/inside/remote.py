"""The checker's side of the wire: proxies of a program's functions and objects for its tests.

A `Remote` can be called, read, changed and iterated over; each of these is a request to the program's process. It is never
compared with anything, and no operator with a second value works on it: the program would learn the expected value, and could
answer that it is equal.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from .wire import Broken, Closed, Wire, become, decode, encode

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, type)
SAFE_ERRORS = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}
BUILT_IN: dict[Any, str] = {kind: name for name, kind in vars(builtins).items() if isinstance(kind, type)}


class Ended(BaseException):
    """The program is gone, or breaks the protocol: no test can continue. A BaseException, so that tests do not catch it."""


class Opaque(TypeError):
    """A test compares an object of the program's own, but only plain values can be compared."""


class Unusable(Exception):
    """The tests do something that cannot be done from outside the program's process."""


class Link:
    """A program, as its checker sees it. in_place: arguments are sent back also where a function returns something."""

    def __init__(self, wire: Wire, in_place: bool):
        self.wire, self.in_place = wire, in_place
        self.lost = ""
        self.lent: list[Callable[..., Any]] = []
        self.remotes: dict[int, Remote] = {}
        self.classes: dict[int, type[Exception]] = {}

    def load(self) -> None:
        self.ask({"do": "load"}, [])

    def names(self, names: list[str]) -> dict[str, Any]:
        defined = self.ask({"do": "names", "names": names}, [])
        # the program chooses what it sends: perhaps another type, or names that it was not asked for
        if type(defined) is not dict or not set(defined) <= set(names):
            self.end("broke the rules")
        return defined

    def do(self, operation: str, on: Remote, *args: Any, **keywords: Any) -> Any:
        sent: dict[int, tuple[int, Any]] = {}
        arguments = encode([list(args), keywords], self.name, sent)
        request = {"do": operation, "on": _number(on), "args": arguments, "in_place": self.in_place}
        return self.ask(request, [value for _, value in sent.values()])

    def ask(self, request: dict[str, Any], sent_values: list[Any]) -> Any:
        """sent_values: the mutable values among the arguments, by number."""
        try:
            self.wire.send(request)
            while "call" in (answer := self.receive()):
                self.wire.send(self.call(answer))
            return self.result(answer, sent_values)
        except Closed:
            self.end("ended before its tests did")
        except Broken as problem:
            self.end(f"sent {problem}")

    def receive(self) -> dict[str, Any]:
        answer = self.wire.receive()
        if type(answer) is not dict:
            raise Broken("something that is no answer")
        return answer

    def result(self, answer: dict[str, Any], sent_values: list[Any]) -> Any:
        if "ended" in answer:
            self.end(f"ended with {str(answer['ended'])[:80]}")
        if "raised" in answer:
            raise self.exception(answer["raised"])
        if "is" not in answer:
            raise Broken("something that is no answer")
        if "now" not in answer or not sent_values:
            return decode(answer["is"], self.find)
        value = decode(answer["is"], self.find, values := list(sent_values))
        self.change(sent_values, answer["now"], values)
        return value

    def change(self, values: list[Any], contents: Any, made: list[Any]) -> None:
        try:
            for value, content in zip(values, contents, strict=True):
                become(value, content, lambda data: decode(data, self.find, made))
        except (TypeError, ValueError):
            raise Broken("something that is no answer") from None

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a function of the tests for the program, one that was an argument."""
        number = request["call"]
        if type(number) is not int or not 0 <= number < len(self.lent):
            raise Broken("a call of a function that it was not given")
        arguments = decode(request.get("args"), self.find)
        if type(arguments) is not list or [type(part) for part in arguments] != [list, dict]:
            raise Broken("a call without arguments")
        try:
            return {"is": encode(self.lent[number](*arguments[0], **arguments[1]), self.name)}
        except Exception as problem:
            kind = next(name for name in (base.__name__ for base in type(problem).__mro__) if name in SAFE_ERRORS)
            return {"raised": [kind, [str(arg) for arg in problem.args]]}

    def name(self, value: Any) -> Any:
        if type(value) is Remote:
            return {"o": _number(value)}
        if isinstance(value, type) and value in BUILT_IN:
            return {"k": BUILT_IN[value]}
        if isinstance(value, FUNCTIONS) and value is not Remote:
            return {"c": self.lend(value)}
        if isinstance(value, Iterator):
            return {"w": self.lend(functools.partial(next, value))}
        raise Unusable(
            f"the tests pass an object of {type(value).__name__}: only plain values, functions and iterators can be sent"
        )

    def lend(self, function: Callable[..., Any]) -> int:
        self.lent.append(function)
        return len(self.lent) - 1

    def find(self, tag: str, content: Any) -> Any:
        if tag == "o":
            number, kind = content
            if type(number) is not int or type(kind) is not str:
                raise ValueError(content)
            return self.remotes.setdefault(number, Remote(self, number, kind))
        if tag == "x":
            return self.exception_class(content)
        if tag == "c" and type(content) is int and 0 <= content < len(self.lent):
            return self.lent[content]
        raise ValueError(tag)

    def exception(self, data: Any) -> Exception:
        try:
            kind, args = self.exception_class(data[0]), decode(data[1], self.find)
        except (TypeError, ValueError, KeyError, IndexError):
            raise Broken("an exception that is none") from None
        try:
            problem = kind(*args)
        except Exception:
            problem = Exception(f"{kind.__name__}: {args}")
        # marks errors of the program, so that an ImportError of the tests themselves is told apart
        problem.is_of_program = True  # type: ignore[attr-defined]
        return problem

    def exception_class(self, data: Any) -> type[Exception]:
        """The class that stands for one of the program's here: its own ones by number, the built-in one by name."""
        own_classes, name = data
        kind: type[Exception] = SAFE_ERRORS.get(name, Exception)
        # from the base class to the class itself, as each one extends the one before
        for number, class_name in reversed(own_classes):
            kind = self.classes.setdefault(int(number), type(str(class_name), (kind,), {}))
        return kind

    def end(self, why: str) -> Any:
        self.lost = f"the program {why}"
        raise Ended(self.lost)


def _number(remote: Remote) -> int:
    return object.__getattribute__(remote, "_number")


def _requests(operation: str) -> Callable[..., Any]:
    def ask(remote: Remote, *args: Any, **keywords: Any) -> Any:
        return object.__getattribute__(remote, "_link").do(operation, remote, *args, **keywords)

    return ask


def _refuses(symbol: str) -> Callable[..., Any]:
    def refuse(remote: Remote, *_: Any) -> Any:
        kind = object.__getattribute__(remote, "_kind")
        raise Opaque(f"an object of the program's own ({kind}) has no {symbol}: only plain values are compared")

    return refuse


class Remote:
    """A function, class or object of the program's own."""

    __slots__ = ("_kind", "_link", "_number")

    def __init__(self, link: Link, number: int, kind: str):
        for name, value in (("_link", link), ("_number", number), ("_kind", kind)):
            object.__setattr__(self, name, value)

    __call__, __getattr__, __setattr__ = _requests("call"), _requests("get"), _requests("set")
    __getitem__, __setitem__, __delitem__ = _requests("item"), _requests("put"), _requests("drop")
    __iter__, __next__, __len__ = _requests("iter"), _requests("next"), _requests("len")
    __bool__, __int__, __float__, __complex__ = _requests("bool"), _requests("int"), _requests("float"), _requests("complex")
    __str__, __repr__, __instancecheck__ = _requests("str"), _requests("repr"), _requests("isinstance")
    __hash__ = object.__hash__


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "contains"):
    setattr(Remote, f"__{_name}__", _refuses(_name))
for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"):
    for _side in ("", "r"):
        setattr(Remote, f"__{_side}{_name}__", _refuses(_name))
