"""Generated Python functions, and an error-prone reader: each value may slip, and errors carry on.

1 def f(x):
2  y = x + 3
3  z = x * 2
4  if y > 6:
5   y = y - 4
6  return y
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b
}  # fmt: skip


class Set(NamedTuple):
    """name = left sign number"""

    name: str
    left: str
    sign: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} = {self.left} {self.sign} {self.number}"


class Block(NamedTuple):
    """An assignment under `if NAME > k:`, or under `for i in range(k):` where there is no name."""

    name: str | None
    number: int
    inner: Set

    @property
    def head(self) -> str:
        return f"if {self.name} > {self.number}:" if self.name else f"for i in range({self.number}):"


class Function(NamedTuple):
    """A body of assignments and blocks, and the name that is returned."""

    body: tuple[Set | Block, ...]
    returns: str

    @property
    def source(self) -> str:
        lines = ["def f(x):"]
        for part in self.body:
            lines += [f" {part.head}", f"  {part.inner}"] if isinstance(part, Block) else [f" {part}"]
        return "\n".join([*lines, f" return {self.returns}"])


def sample_function(rng: random.Random) -> Function:
    """Two assignments, then up to three more statements."""
    body: list[Set | Block] = [_set("y", "x", rng), _set("z", "x", rng)]
    for _ in range(rng.randint(1, 3)):
        name = rng.choice("yz")
        inner = _set(name, rng.choice((name, name, "x")), rng)
        kind = rng.choice(("set", "if", "for"))
        block = Block(rng.choice("yz"), rng.randint(2, 9), inner) if kind == "if" else Block(None, 2, inner)
        body.append(inner if kind == "set" else block)
    return Function(tuple(body), rng.choice("yz"))


def _set(name: str, left: str, rng: random.Random) -> Set:
    sign = rng.choice("+-*")
    return Set(name, left, sign, rng.randint(2, 3) if sign == "*" else rng.randint(1, 9))


def follow(function: Function, x: int, slip: Callable[[int], int] = lambda value: value) -> list[dict[str, Any]]:
    """The events of f(x), as `tracer.traced` finds them. slip: what a reader makes of each value that is computed."""
    values = {"x": x}

    def event(line: int) -> dict[str, Any]:
        return {"line": line, "locals": {name: [repr(value), "int"] for name, value in values.items()}}

    def run(inner: Set) -> None:
        values[inner.name] = slip(OPERATIONS[inner.sign](values[inner.left], inner.number))

    def events() -> Iterator[dict[str, Any]]:
        line = 2
        for part in function.body:
            if isinstance(part, Set):
                yield event(line)
                run(part)
                line += 1
                continue
            for i in range(1 if part.name else part.number):
                yield event(line)
                if part.name and values[part.name] <= part.number:
                    break
                if not part.name:
                    values["i"] = i
                yield event(line + 1)
                run(part.inner)
            if not part.name:
                yield event(line)
            line += 2
        yield event(line)

    found = list(events())
    return [*found, {"value": repr(values[function.returns]), "type": "int"}]
