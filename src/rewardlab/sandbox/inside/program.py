"""The process that holds a program. Its checker sends it requests, one at a time; nothing that it answers is trusted.

To `{"do": "call", "on": 3, "args": ...}` it answers `{"is": value}`, `{"raised": ...}` or `{"ended": why}`; before that it may
request that the checker calls a function that was an argument: `{"call": 0, "args": ...}`. Objects that are not plain values stay
here, under a number. A function that returns None, as functions that work in place do, also sends back its changed arguments.
"""

from __future__ import annotations

import atexit
import builtins
import json
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

from .wire import Broken, Closed, Wire, contents, decode, encode, numbered

MODULE = "program"
UNARY = ("bool", "complex", "float", "int", "iter", "len", "next", "repr", "str")
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in UNARY},
    "call": lambda what, *args, **named: what(*args, **named),
    "get": getattr,
    "set": setattr,
    "item": lambda what, key: what[key],
    "put": lambda what, key, value: what.__setitem__(key, value),
    "drop": lambda what, key: what.__delitem__(key),
    "isinstance": lambda what, value: isinstance(value, what),
}


class Program:
    """Answers the requests of a checker."""

    def __init__(self, wire: Wire, sources: list[str]):
        self.wire, self.sources = wire, sources
        self.module = types.ModuleType(MODULE)
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.lent: dict[int, tuple[int, Any]] = {}

    def serve(self) -> None:
        while True:
            request = self.wire.receive()
            try:
                answer = self.answer(request)
            except (Closed, Broken):
                raise
            except Exception as problem:
                answer = {"raised": self.name_exception(problem)}
            except BaseException as problem:
                answer = {"ended": type(problem).__name__}
            self.send(answer)

    def send(self, answer: Any) -> None:
        try:
            self.wire.send(answer)
        except ValueError as problem:
            self.wire.send({"ended": str(problem)})

    def answer(self, request: dict[str, Any]) -> Any:
        if request["do"] == "load":
            self.load()
            return {"is": None}
        if request["do"] == "names":
            namespace = vars(self.module)
            return {"is": encode({name: namespace[name] for name in request["names"] if name in namespace}, self.name_object)}
        mutables: list[Any] = []
        args, keywords = decode(request["args"], self.find, mutables)
        value = OPERATIONS[request["do"]](self.objects[request["on"]], *args, **keywords)
        if value is None or request["in_place"]:
            seen = numbered(mutables)
            answer = {"is": encode(value, self.name_object, seen)}
            return answer | {"now": [contents(item, lambda x: encode(x, self.name_object, seen)) for item in mutables]}
        return {"is": encode(value, self.name_object)}

    def load(self) -> None:
        sys.modules[MODULE] = self.module
        for source in self.sources:
            exec(compile(source, f"<{MODULE}>", "exec"), vars(self.module))

    def name_object(self, value: Any) -> Any:
        if id(value) in self.lent:
            return {"c": self.lent[id(value)][0]}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"x": self.name_class(value)}
        return {"o": [self.number(value), type(value).__name__]}

    def number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def name_class(self, kind: type[BaseException]) -> list[Any]:
        """The program's own classes of an exception, each with its number, and the built-in class that they extend."""
        own_classes: list[Any] = []
        for base in kind.__mro__:
            if getattr(builtins, base.__name__, None) is base:
                return [own_classes, base.__name__]
            own_classes.append([self.number(base), base.__name__])
        return [own_classes, "Exception"]

    def name_exception(self, problem: Exception) -> list[Any]:
        try:
            args = encode(list(problem.args), lambda value: repr(value))
        except Exception:
            args = []
        return [self.name_class(type(problem)), args]

    def find(self, tag: str, content: Any) -> Any:
        if tag == "o":
            return self.objects[content]
        if tag == "k":
            return getattr(builtins, content)
        function = self.walk(content) if tag == "w" else self.borrow(content)
        # held, so that the function goes back under its number if the program returns it, and its id stays its own
        self.lent[id(function)] = content, function
        return function

    def borrow(self, number: int) -> Callable[..., Any]:
        """A function of the checker's; calling it here calls it there."""

        def lent(*args: Any, **keywords: Any) -> Any:
            self.send({"call": number, "args": encode([list(args), keywords], self.name_object)})
            while True:
                reply = self.wire.receive()
                if "do" not in reply:
                    break
                self.send(self.answer(reply))
            if "raised" in reply:
                raise getattr(builtins, reply["raised"][0])(*reply["raised"][1])
            return decode(reply["is"], self.find)

        return lent

    def walk(self, number: int) -> Iterator[Any]:
        step = self.borrow(number)
        while True:
            try:
                yield step()
            except StopIteration:
                return


def serve(source: int, wire: int) -> None:
    """Answer requests to a program until the checker is gone."""
    random.seed(0)
    try:
        Program(Wire(wire), _read(source)).serve()
    except (Closed, Broken):
        os._exit(0)


def run(source: int) -> None:
    """Run a program from its beginning to its end, as Python does."""
    random.seed(0)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, mode, encoding="utf-8", errors="replace") for i, mode in enumerate("rww"))
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    code = 0
    try:
        for text in _read(source):
            exec(compile(text, f"<{MODULE}>", "exec"), vars(module))
        # as at the end of Python: wait for the program's threads, then run its exit handlers
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as problem:
        # without the frame of this function
        traceback.print_exception(problem.with_traceback(problem.__traceback__ and problem.__traceback__.tb_next))
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            code = code or 1
    os._exit(code & 0xFF)


def _read(source: int) -> list[str]:
    with open(source, "rb") as file:
        return json.loads(file.read())
